"""Route messages and record the decisions.

If the version of a router is in memory, a message needs no database before its decision is recorded: the
INSERT finds an earlier decision on the same message. Otherwise the earlier decision is looked up first, so
that the repetition of a message does not wait for the version. The same holds for a message that is kept,
whose file is written before its decision is recorded.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import structlog

from app.api.structs import to_builtins, to_json
from app.context import AppContext
from app.errors import NotFound, NotReady
from app.logs import note_decision
from app.metrics import FALLBACKS, KEPT_MESSAGES, count_decision
from app.routing import canary, policies, service
from app.routing.decision_content import message_summary, new_decision
from app.routing.decision_rows import DecisionRow
from app.routing.decision_rules import (
    DECISION_RANKING,
    NO_KNOWN_WORDS,
    apply_rules,
    decision_ranking,
    fallback_outcome,
    predicted_labels,
    set_probability,
)
from app.routing.decision_writer import DecisionWriter
from app.routing.explained_texts import texts_of_explanation
from app.routing.kept_messages import ArchiveResult, MessageArchive, OriginalMessage, is_kept
from app.routing.review_sample import is_sampled
from app.routing.schemas import Decision, RouterPut
from app.routing.scoring import ScoredMessage, reads_mail, score
from app.routing.shadows import ShadowMessage, ShadowRecorder
from app.serving.latency_estimate import CostEstimate, run_measured
from app.serving.loaded_models import ArtifactUnavailable, LoadedModels, VersionReference
from app.serving.loaded_version import LoadedVersion, RouterRule
from app.serving.state import Catalog, ServedRouter, ServedVersion, Snapshot
from app.serving.version_loading import load_version
from app.storage import StorageUnavailableError
from app.threads import PREDICTIONS, REQUESTS
from models.errors import CoveyError
from models.mail import MailDocument, reader

log = structlog.get_logger()


class ReadyVersion(NamedTuple):
    """A version in memory with the rule of a router."""

    version: ServedVersion
    loaded: LoadedVersion
    rule: RouterRule


@dataclass(frozen=True, slots=True)
class Undecided:
    """The reason why a version could not decide.

    Attributes:
        version: the version; None if it does not exist.
        reason: the reason.
    """

    version: VersionReference | None
    reason: str


class MessageRouter:
    """Router of the messages of one process. It belongs to the event loop.

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
        self._archive = MessageArchive(ctx)

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
        snapshot, router = await self._catalog.find_router(name)
        config = _config(router)
        with_texts = bool(explain)
        explain = config.explain if explain is None else explain
        ready = await self._ready(snapshot, router, config)
        if not ready:
            mail = await PREDICTIONS.run(read)
            reference, scored = _choose(router, config, mail), None
        else:

            def read_and_score() -> tuple[MailDocument, int | str, ScoredMessage | None]:
                mail = read()
                reference = _choose(router, config, mail)
                return mail, reference, _score(ready.get(reference), mail, explain=explain)

            cost = _cost(router, config, ready, explain)
            mail, reference, scored = await run_measured(cost, 1, n_bytes, read_and_score)
        key = message_key(mail)
        if scored is not None:
            decision = self._decide(router.name, config, ready[reference], mail, scored)
        else:
            earlier = await REQUESTS.run(service.find_response, self._ctx.db, router.id, key)
            if earlier is not None:
                return _stored_to_json(earlier, mail if with_texts else None)
            decision = await self._decide_without_memory(router, config, reference, mail, explain=explain)
        decision.sampled = is_sampled(router.id, key, config.review_sample)
        archived = ArchiveResult()
        if is_kept(config.keep_messages, decision):
            earlier = await REQUESTS.run(service.find_response, self._ctx.db, router.id, key)
            if earlier is not None:
                return _stored_to_json(earlier, mail if with_texts else None)
            archived = await self._archive.write(decision.decision_id, config, original)
            decision.message_kept = archived.key is not None
            KEPT_MESSAGES.labels("kept" if decision.message_kept else "not_kept").inc()
            decision.not_kept_reason = archived.reason
        return await self._record(router, config, key, decision, mail, archived, with_texts=with_texts)

    async def _ready(
        self, snapshot: Snapshot, router: ServedRouter, config: RouterPut
    ) -> dict[int | str, ReadyVersion]:
        """Return the versions of a router that are in memory and can decide, by their references."""
        ready: dict[int | str, ReadyVersion] = {}
        for reference in config.references:
            version = snapshot.version(config.model, reference)
            loaded = self._loaded.loaded(version) if version is not None else None
            if version is not None and loaded is not None and reads_mail(loaded.pipeline):
                rule = loaded.rules.get(router) or await _compute_rule(loaded, router, config)
                if rule is not None:
                    ready[reference] = ReadyVersion(version, loaded, rule)
        return ready

    async def _decide_without_memory(
        self, router: ServedRouter, config: RouterPut, chosen: int | str, mail: MailDocument, *, explain: bool
    ) -> Decision:
        """Load the chosen version and decide; by another version if it cannot, or by the fallback.

        Raises:
            NotReady: the chosen version is being loaded, and no other version that is in memory can decide.
            StorageUnavailableError: the same, because the storage is unavailable.
        """
        undecided = Undecided(None, "the router has no version")
        unavailable: NotReady | StorageUnavailableError | None = None
        for reference in canary.in_order(config, chosen):
            if unavailable is not None and not self._is_in_memory(config.model, reference):
                continue  # a message must not wait for several versions
            try:
                found = await self._attempt(router, config, reference, mail, explain=explain)
            except (NotReady, StorageUnavailableError) as error:
                unavailable = unavailable or error
                continue
            if not isinstance(found, Undecided):
                return found
            if reference == chosen:
                undecided = found
            if config.versions:
                log.error("routing.undecided", router=router.name, version=reference, reason=found.reason)
        if unavailable is not None:
            raise unavailable
        return self._fall_back(router.name, config, undecided, mail)

    def _is_in_memory(self, model: str, reference: int | str) -> bool:
        snapshot = self._catalog.current
        version = None if snapshot is None else snapshot.version(model, reference)
        return version is not None and self._loaded.is_loaded(version)

    async def _attempt(
        self,
        router: ServedRouter,
        config: RouterPut,
        reference: int | str,
        mail: MailDocument,
        *,
        explain: bool,
    ) -> Decision | Undecided:
        """Load a version and decide, or return why it cannot decide."""

        def apply() -> tuple[RouterRule, ScoredMessage]:
            rule = policies.router_rule(loaded, router, config)
            return rule, score(loaded, mail, rule.rule, explain=explain)

        try:
            version, loaded = await load_version(self._catalog, self._loaded, config.model, reference)
        except NotFound as error:  # a router's references cannot be deleted, but can be missing in a backup
            return Undecided(None, error.detail)
        except ArtifactUnavailable as error:
            return Undecided(error.version, error.detail)
        if not reads_mail(loaded.pipeline):  # an alias that the router uses was moved to this version
            return Undecided(version, service.cannot_read_mail(version))
        try:
            rule, scored = await PREDICTIONS.run(apply)
        except CoveyError as error:
            return Undecided(version, str(error))
        except Exception as error:
            # A mail server would send the message again and again, and then return it to its sender.
            log.exception("routing.failed", router=router.name)
            reason = f"version {version.version} of {version.model} failed with {type(error).__name__}"
            return Undecided(version, reason)
        return self._decide(router.name, config, ReadyVersion(version, loaded, rule), mail, scored)

    def _decide(
        self, name: str, config: RouterPut, by: ReadyVersion, mail: MailDocument, scored: ScoredMessage
    ) -> Decision:
        settings, pipeline, ranked = self._ctx.settings, by.loaded.pipeline, scored.ranking
        labels = pipeline.labels_
        selected = predicted_labels(labels, ranked)
        outcome = apply_rules(config, selected, set_probability(ranked), by.rule.unmet)
        ranking = decision_ranking(labels, ranked, selected, DECISION_RANKING)
        explanation = scored.explanation
        if explanation:
            included = {item.label for item in ranking}
            explanation = [item for item in explanation if item.label in included]
        return new_decision(
            name,
            by.version.model,
            by.version.version,
            outcome,
            message_summary(
                mail,
                keep_text=settings.keep_decision_text,
                unknown_words=ranked.unknown_terms,
            ),
            ranking=ranking,
            explanation=explanation,
            fallback_reason=NO_KNOWN_WORDS if ranked.empty[0] else None,
        )

    def _fall_back(self, name: str, config: RouterPut, undecided: Undecided, mail: MailDocument) -> Decision:
        # A person must read the message, although the version may stay unnoticed for days.
        log.error("routing.fallback", router=name, reason=undecided.reason)
        FALLBACKS.labels(name).inc()
        return new_decision(
            name,
            config.model,
            None if undecided.version is None else undecided.version.version,
            fallback_outcome(config),
            message_summary(mail, keep_text=self._ctx.settings.keep_decision_text),
            fallback_reason=undecided.reason,
        )

    async def _record(
        self,
        router: ServedRouter,
        config: RouterPut,
        key: str,
        decision: Decision,
        mail: MailDocument,
        archived: ArchiveResult,
        *,
        with_texts: bool,
    ) -> bytes:
        """Record a decision, and return it; or return the one that another request has recorded."""
        explanation = decision.explanation
        if not self._ctx.settings.keep_decision_text:
            decision.explanation = None  # its terms are words of the message
        stored = to_json(decision).decode()
        note_decision(decision.decision_id)
        earlier = await self._writer.write(
            DecisionRow(decision, router.id, key, stored, archived.key, archived.until)
        )
        if earlier is not None:
            return _stored_to_json(earlier, mail if with_texts else None)
        count_decision(router.name, decision.model, decision.version, decision.disposition)
        if config.shadow is not None:
            labels = frozenset([department.label for department in decision.departments])
            self._shadows.add(
                ShadowMessage(decision.decision_id, router, config, config.shadow, labels, mail)
            )
        if explanation is None:
            return stored.encode()
        decision.explanation = explanation
        if with_texts:
            decision.texts = texts_of_explanation(mail, to_builtins(explanation))
        return to_json(decision)


def message_key(mail: MailDocument) -> str:
    """Return a key that is equal for equal messages: a digest of the Message-ID and the body.

    A message without both has no identity. Its key is a new one, so that no other message gets its decision.
    """
    if mail.message_id is None and not mail.has_content:
        return secrets.token_hex(32)
    return reader.message_key(mail.message_id, mail.body_digest)


@lru_cache(maxsize=1000)
def _config(router: ServedRouter) -> RouterPut:
    """Return the configuration of a router. A changed router is a new object, which is parsed again."""
    return RouterPut.model_validate(router.config)


def _choose(router: ServedRouter, config: RouterPut, mail: MailDocument) -> int | str:
    """Return the reference of the version that decides on a message."""
    if not config.versions:
        return config.references[0]
    key = canary.sticky_key(config, mail, message_key(mail))
    return canary.choose(router.id, key, config.versions)


def _cost(
    router: ServedRouter, config: RouterPut, ready: Mapping[int | str, ReadyVersion], explain: bool
) -> CostEstimate:
    """Return the estimate of the time of a message: that of its version, or of all versions of the router."""
    if config.versions:
        return _common_cost(router, explain)
    (only,) = ready.values()
    return only.loaded.explanation_cost if explain else only.loaded.message_cost


@lru_cache(maxsize=1000)
def _common_cost(router: ServedRouter, explain: bool) -> CostEstimate:  # noqa: ARG001 - the keys of the cache
    return CostEstimate()


async def _compute_rule(version: LoadedVersion, router: ServedRouter, config: RouterPut) -> RouterRule | None:
    """Return the rule of a router for a version; None if it cannot be computed."""
    with suppress(Exception):  # it is computed again, and what is wrong becomes the reason of a fallback
        return await PREDICTIONS.run(lambda: policies.router_rule(version, router, config))
    return None


def _score(by: ReadyVersion | None, mail: MailDocument, *, explain: bool) -> ScoredMessage | None:
    """Return the scores of a message, or None if the version is not in memory or cannot score it."""
    if by is None:
        return None
    try:
        return score(by.loaded, mail, by.rule.rule, explain=explain)
    except Exception:  # noqa: BLE001 - it is scored again, and what is wrong becomes the reason of a fallback
        return None


def _stored_to_json(response: dict[str, Any], mail: MailDocument | None) -> bytes:
    """Return a stored decision as JSON, with the texts of its explanation if the message is given."""
    note_decision(response["decision_id"])
    if mail is not None and "explanation" in response:
        response = {**response, "texts": texts_of_explanation(mail, response["explanation"])}
    return Decision.model_validate(response).model_dump_json(exclude_none=True).encode()
