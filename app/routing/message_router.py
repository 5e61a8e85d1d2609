"""Routes messages and records the decisions.

If the version of a router is in memory, a message needs no database before its decision is recorded: the
INSERT finds an earlier decision on the same message. Otherwise the earlier decision is looked up first, so
that the repetition of a message does not wait for the version. The same holds for a message that is kept,
whose file is written before its decision is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import structlog
from anyio import to_thread
from pydantic_core import to_json

from app.context import AppContext
from app.http.errors import NotFound
from app.logs import note_decision
from app.metrics import FALLBACKS, count_decision
from app.routing import policies, service
from app.routing.decision_content import Content, decision_content, decision_row, message_content
from app.routing.decision_rules import (
    apply_rules,
    decision_ranking,
    fallback_outcome,
    predicted_labels,
    set_probability,
)
from app.routing.kept_messages import Keeping, MessageKeeper, OriginalMessage, is_kept
from app.routing.schemas import Decision, RouterPut
from app.routing.scoring import ScoredMessage, is_readable, reads_mail, score
from app.routing.shadows import ShadowMessage, ShadowRecorder
from app.serving.catalog import Catalog, ServedRouter, ServedVersion, Snapshot
from app.serving.costs import run_in_prediction_thread, run_measured
from app.serving.decision_writer import DecisionWriter
from app.serving.loaded_models import ArtifactUnavailable, LoadedModels, VersionReference
from app.serving.loaded_version import LoadedVersion, RouterRule
from app.serving.version_loading import load_version
from models.errors import CoveyError
from models.mail import MailDocument, reader

log = structlog.get_logger()


class MessageRouter:
    """Routes the messages of one process. It belongs to the event loop.

    Args:
        ctx: the application context.
        catalog: knows routers and versions.
        loaded: the versions in memory.
        writer: records decisions.
        shadows: records what shadow versions predict.
    """

    def __init__(
        self,
        ctx: AppContext,
        catalog: Catalog,
        loaded: LoadedModels,
        writer: DecisionWriter,
        shadows: ShadowRecorder,
    ) -> None:
        self._ctx = ctx
        self._catalog = catalog
        self._loaded = loaded
        self._writer = writer
        self._shadows = shadows
        self._keeper = MessageKeeper(ctx)

    async def route(
        self,
        name: str,
        read: Callable[[], MailDocument],
        *,
        n_bytes: int,
        explain: bool | None = None,
        original: OriginalMessage | None = None,
    ) -> bytes:
        """Route a message, and return the recorded decision as JSON.

        A message that takes little time is read and scored on the event loop, any other in a thread.

        Args:
            name: name of the router.
            read: reads the message.
            n_bytes: size of the message.
            explain: whether to explain the decision; None for the setting of the router.
            original: the message as it was sent, for a router that keeps messages.

        Returns:
            The decision. A message that was routed before gets its first decision.

        Raises:
            NotFound: there is no such router.
            NotReady: too many decisions wait, or the version is being loaded.
            Conflict: an earlier decision on the message was deleted again and again.
            SQLAlchemyError: the decision cannot be recorded.
        """
        snapshot, router = await self._find_router(name)
        config = _config(router)
        explain = config.explain if explain is None else explain
        in_memory = self._in_memory(snapshot, config)
        rule = None if in_memory is None else await _rule(in_memory[1], router, config)
        if in_memory is None or rule is None:
            mail, scored = await run_in_prediction_thread(read), None
        else:
            loaded = in_memory[1]

            def read_and_score() -> tuple[MailDocument, ScoredMessage | None]:
                mail = read()
                return mail, _score(loaded, mail, rule, explain=explain)

            cost = loaded.explanation_cost if explain else loaded.message_cost
            mail, scored = await run_measured(cost, 1, n_bytes, read_and_score)
        key = message_key(mail)
        if scored is not None and in_memory is not None and rule is not None:
            content = self._decide(router.name, config, *in_memory, mail, scored, rule)
        else:
            earlier = await to_thread.run_sync(service.find_response, self._ctx.db, router.id, key)
            if earlier is not None:
                return _stored_to_json(earlier)
            content = await self._decide_without_memory(router, config, mail, explain=explain)
        keeping = Keeping()
        if is_kept(config.keep_messages, content["disposition"]):
            earlier = await to_thread.run_sync(service.find_response, self._ctx.db, router.id, key)
            if earlier is not None:
                return _stored_to_json(earlier)
            keeping = await self._keeper.keep(content["decision_id"], config, original)
            content["message_kept"] = keeping.key is not None
            if keeping.reason is not None:
                content["not_kept_reason"] = keeping.reason
        return await self._record(router, config, key, content, mail, keeping)

    async def _find_router(self, name: str) -> tuple[Snapshot, ServedRouter]:
        snapshot = self._catalog.current or await self._catalog.fresh()
        router = snapshot.router(name)
        if router is None:
            snapshot = await self._catalog.after_miss()
            router = snapshot.router(name)
        if router is None:
            raise NotFound(f"there is no router {name}")
        return snapshot, router

    def _in_memory(self, snapshot: Snapshot, config: RouterPut) -> tuple[ServedVersion, LoadedVersion] | None:
        """Return the version of a router if it is in memory and can decide."""
        version = snapshot.version(config.model, config.version)
        loaded = self._loaded.loaded(version) if version is not None else None
        if version is None or loaded is None or not reads_mail(loaded.pipeline):
            return None
        return version, loaded

    async def _decide_without_memory(
        self, router: ServedRouter, config: RouterPut, mail: MailDocument, *, explain: bool
    ) -> Content:
        """Load the version and decide; the fallback if it does not exist, or cannot be loaded or decide."""
        name = router.name

        def apply() -> tuple[RouterRule, ScoredMessage]:
            rule = policies.router_rule(loaded, router, config)
            return rule, score(loaded, mail, rule.rule, explain=explain)

        try:
            version, loaded = await load_version(self._catalog, self._loaded, config.model, config.version)
        except NotFound as error:  # a router's references cannot be deleted, but can be missing in a backup
            return self._fall_back(name, config, None, mail, error.detail)
        except ArtifactUnavailable as error:
            return self._fall_back(name, config, error.version, mail, error.detail)
        if not reads_mail(loaded.pipeline):  # an alias that the router uses was moved to this version
            return self._fall_back(name, config, version, mail, service.cannot_read_mail(version))
        try:
            rule, scored = await run_in_prediction_thread(apply)
        except CoveyError as error:
            return self._fall_back(name, config, version, mail, str(error))
        except Exception as error:
            # A mail server would send the message again and again, and then return it to its sender.
            log.exception("routing.failed", router=name)
            reason = f"version {version.version} of {version.model} failed with {type(error).__name__}"
            return self._fall_back(name, config, version, mail, reason)
        return self._decide(name, config, version, loaded, mail, scored, rule)

    def _decide(
        self,
        name: str,
        config: RouterPut,
        version: ServedVersion,
        loaded: LoadedVersion,
        mail: MailDocument,
        scored: ScoredMessage,
        rule: RouterRule,
    ) -> Content:
        settings, labels, ranked = self._ctx.settings, loaded.pipeline.labels_, scored.ranking
        outcome = (
            apply_rules(config, predicted_labels(labels, ranked), set_probability(ranked), rule.unmet)
            if is_readable(loaded.pipeline, mail)
            else fallback_outcome(config)
        )
        ranking = decision_ranking(labels, ranked, outcome, settings.decision_ranking)
        explanation = scored.explanation
        if explanation:
            included = {item.label for item in ranking}
            explanation = [item for item in explanation if item.label in included]
        return decision_content(
            name,
            version.model,
            version.version,
            outcome,
            message_content(
                mail,
                keep_text=settings.keep_decision_text,
                unknown_words=ranked.unknown_terms,
            ),
            ranking=ranking,
            explanation=explanation,
        )

    def _fall_back(
        self, name: str, config: RouterPut, version: VersionReference | None, mail: MailDocument, reason: str
    ) -> Content:
        # Somebody must read the message, although nobody may notice the version for days.
        log.error("routing.fallback", router=name, reason=reason)
        FALLBACKS.labels(name).inc()
        return decision_content(
            name,
            config.model,
            None if version is None else version.version,
            fallback_outcome(config),
            message_content(mail, keep_text=self._ctx.settings.keep_decision_text),
            fallback_reason=reason,
        )

    async def _record(
        self,
        router: ServedRouter,
        config: RouterPut,
        key: str,
        content: Content,
        mail: MailDocument,
        keeping: Keeping,
    ) -> bytes:
        """Record a decision, and return it; or return the one that another request has recorded."""
        body = stored = to_json(content)
        if "explanation" in content and not self._ctx.settings.keep_decision_text:
            # The terms of an explanation are words of the message.
            stored = to_json({name: value for name, value in content.items() if name != "explanation"})
        id_: str = content["decision_id"]
        note_decision(id_)
        earlier, is_new = await self._writer.write(
            decision_row(router.id, key, content, stored.decode(), keeping.key, keeping.until)
        )
        if earlier is not None:
            return _stored_to_json(earlier)
        count_decision(router.name, content["model"], content.get("version"), content["disposition"])
        if is_new and config.shadow is not None:
            labels = frozenset([department["label"] for department in content["departments"]])
            self._shadows.add(ShadowMessage(id_, config.model, config.shadow, labels, mail))
        return body


def message_key(mail: MailDocument) -> str:
    """Return a key that is equal for equal messages: a digest of the Message-ID and the body."""
    return reader.message_key(mail.message_id, mail.body_digest)


@lru_cache(maxsize=1000)
def _config(router: ServedRouter) -> RouterPut:
    """Return the configuration of a router. A changed router is a new object, which is parsed again."""
    return RouterPut.model_validate(router.config)


async def _rule(version: LoadedVersion, router: ServedRouter, config: RouterPut) -> RouterRule | None:
    """Return the rule of a router for a version; None if it cannot be computed."""
    rule = version.rules.get(router)
    if rule is None:
        with suppress(Exception):  # it is computed again, and what is wrong becomes the reason of a fallback
            return await run_in_prediction_thread(lambda: policies.router_rule(version, router, config))
    return rule


def _score(
    version: LoadedVersion, mail: MailDocument, rule: RouterRule, *, explain: bool
) -> ScoredMessage | None:
    """Return the scores of a message, or None if the version cannot score it."""
    try:
        return score(version, mail, rule.rule, explain=explain)
    except Exception:  # noqa: BLE001 - it is scored again, and what is wrong becomes the reason of a fallback
        return None


def _stored_to_json(response: Content) -> bytes:
    note_decision(response["decision_id"])
    return Decision.model_validate(response).model_dump_json(exclude_none=True).encode()
