"""The settings of the service. Each is an environment variable ``COVEY_…`` with a default value."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveInt,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.settings import checks

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

KEY_BYTES = 32

PREFIX = "COVEY_"

CLIENT_VARIABLES = frozenset({"COVEY_API_KEY", "COVEY_IMAP_PASSWORD", "COVEY_URL"})
"""Variables of commands that call a service. They are no settings."""


Protocol: TypeAlias = Literal["open_inference", "label_studio"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

Role: TypeAlias = Literal["reader", "reviewer", "editor", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)

Days = Annotated[float, Field(ge=0, le=36_500)]
Seconds = Annotated[float, Field(ge=0, le=31_536_000)]
PositiveSeconds = Annotated[float, Field(gt=0, le=31_536_000)]
Hours = Annotated[float, Field(ge=0, le=876_000)]

_Check: TypeAlias = Callable[[Any], None]

_CHECKS: Final[dict[str, _Check]] = {
    "data_dir": checks.check_data_dir,
    "database_url": checks.url_check(checks.DATABASES, "postgresql://user:password@host/name"),
    "broker_url": checks.url_check(checks.BROKERS, "redis://host:6379/0"),
    "limits_url": checks.url_check(checks.LIMITS, "redis://host:6379/1"),
    "storage_url": checks.check_storage_url,
    "host": checks.check_listening_host,
    "worker_metrics": checks.check_host_and_port,
    "inbound_ses_certificates": checks.check_certificates,
    "root_path": checks.check_root_path,
}
"""Checks of whole values, by setting."""

_LISTS: Final[dict[str, _Check]] = {
    "cors_origins": checks.check_origin,
    "allowed_hosts": checks.check_host_name,
    "trusted_proxies": checks.check_proxy,
    "oidc_email_domains": checks.check_host_name,
}
"""Checks of each item, by setting."""

_PROVIDERS: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "inbound_sendgrid_keys": (checks.is_public_key, "a public key in base64"),
    "inbound_mailgun_keys": (bool, "a signing key"),
    "inbound_postmark_credentials": (checks.is_credential, "user:password"),
    "inbound_ses_topics": (checks.is_topic, "an ARN such as arn:aws:sns:eu-west-1:123456789012:mail"),
}
"""What a key of each e-mail provider looks like, by setting."""


class Settings(BaseSettings):
    """All settings. Command-line options take precedence over environment variables."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # it can be a secret
        allow_inf_nan=False,
    )

    data_dir: Path = Path("covey-data")
    """Folder of the embedded database, broker and storage. Each has a setting below that replaces it."""

    database_url: SecretStr = SecretStr("")
    """SQLAlchemy URL of the database (SQLite or PostgreSQL). Empty: a SQLite file in the data folder."""

    database_connections: PositiveInt = 64
    """Maximum number of database connections of one process, which opens them when it needs them. By default
    each thread of an API process that can use the database has one. If PostgreSQL allows fewer for all
    processes together (``max_connections``), reduce it: requests then wait for a free connection."""

    broker_url: SecretStr = SecretStr("")
    """Celery URL of the broker (Redis, Valkey or RabbitMQ). Empty: the bundled server on a Unix socket."""

    storage_url: str = ""
    """URL of the storage: a folder, ``file:///folder``, or a bucket,
    ``s3://bucket/prefix?endpoint=…&region=…``, with credentials in the environment (``AWS_ACCESS_KEY_ID`` and
    related variables). Empty: a folder in the data folder."""

    storage_cache_bytes: PositiveInt = 20 * GIB
    """Maximum size of the local copies. Copies in use are never removed and can exceed the limit."""

    host: str = "127.0.0.1"
    """Address to listen on. On any address other than loopback, an API key must exist."""

    port: int = Field(default=8000, ge=0, le=65535)
    """Port to listen on. 0: any free port."""

    processes: PositiveInt = 1
    """Number of API processes of `covey serve` and `covey api`. Use at most one for each core. Limits of one
    API process and its database connections exist once for each."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum severity of logged events."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """Format of the log: JSON lines for machines, or coloured lines for people. ``auto``: lines for people if
    standard error is a terminal, otherwise JSON."""

    access_log: Literal["all", "sampled", "errors"] = "sampled"
    """Requests for which the API writes a log line. ``all``: every request. ``sampled``: every request that
    fails, and at most ten successful requests per second of each operation in each process; the field
    ``skipped`` counts the requests in between. ``errors``: only requests that fail. Metrics always count
    every request."""

    worker_concurrency: PositiveInt = 2
    """Number of jobs that one worker runs at the same time."""

    worker_metrics: str = ""
    """Address, ``HOST:PORT``, at which a worker serves ``/metrics`` and ``/health``. Each worker of a machine
    needs a port of its own. Empty: it serves none."""

    job_threads: PositiveInt = 1
    """Number of threads that numerical libraries, and trainings of ``svm`` and ``h_svm``, can use in one
    job."""

    job_niceness: int = Field(default=10, ge=0, le=19)
    """Niceness of job processes. Higher values give priority to other work, such as predictions. 0: same
    priority."""

    job_attempts: PositiveInt = 10
    """Number of times that a job's process can die without progress before the job fails with
    ``worker_lost``."""

    job_unavailable_hours: Hours = 24.0
    """Hours for which a job is repeated, without progress, because its process cannot reach the database or a
    file of the storage. Afterwards it fails with ``dependency_unavailable``. 0: no limit."""

    job_memory_bytes: NonNegativeInt | None = None
    """Maximum memory of a job's process. If exceeded, the job fails with ``out_of_memory``. Empty: 80 % of
    the memory of the machine or container, divided by ``COVEY_WORKER_CONCURRENCY``. 0: no limit."""

    job_seconds: Seconds = 0.0
    """Maximum running time of a job. If exceeded, the job fails with ``out_of_time``. 0: no limit."""

    checkpoint_seconds: PositiveSeconds = 5.0
    """Time between checkpoints of a training. The time is longer if writing a checkpoint is slow."""

    drain_seconds: Seconds = 0.0
    """Time for which the API accepts new connections after SIGTERM, so that load balancers notice the
    shutdown."""

    collect_seconds: PositiveSeconds = 300.0
    """Time between deletions of unused files and rows by a worker. A file without a database row is kept for
    twelve times as long."""

    keep_decisions_days: Days = 365.0
    """Age in days at which a decision is deleted, with its feedback. The default covers a year of mail, as
    long as most statistics look back. If the same message arrives later, it gets a new decision. 0: never."""

    keep_jobs_days: Days = 90.0
    """Age in days at which a finished job is deleted, with its events and its learning curve. The default
    leaves a quarter to find out why a job failed. Jobs of existing versions, evaluations, batch
    predictions and experiments are kept. 0: never."""

    keep_experiments_days: Days = 0.0
    """Age in days at which a finished experiment is deleted, with its cells and its report. By default
    experiments are kept, because their reports are results that a publication may cite. 0: never."""

    keep_batch_predictions_days: Days = 30.0
    """Age in days at which a finished batch prediction is deleted, with its result. The default leaves a
    month to download it. 0: never."""

    keep_webhook_deliveries_days: Days = 30.0
    """Age in days, at least an hour, at which a finished delivery of a webhook is deleted. The default leaves
    a month to find out what a receiver got. 0: never."""

    keep_uploads_days: Days = 7.0
    """Age in days at which the uploaded file of a data set is deleted. Its examples remain. The default
    leaves a week to read a file again with other options. A small fraction, such as 0.01, deletes files soon
    after they were read. 0: never."""

    keep_versions: NonNegativeInt = 0
    """Number of versions of each model that are kept. Older ones are deleted a day after their training,
    except those that an alias has or had before, or that a router or a job uses. 0: all versions are kept."""

    keep_datasets: NonNegativeInt = 0
    """Number of data sets that are kept. Older ones are deleted a day after their creation, except those of
    existing versions, evaluations and experiments, or that a job uses. 0: all data sets are kept."""

    lease_seconds: PositiveSeconds = 8.0
    """Time after which a worker that sends no heartbeat loses its jobs. A worker sends a heartbeat every
    second, or eight times in this time if that is more often."""

    remote_control: bool = True
    """Whether Celery's remote control and events are on, which Flower, ``inspect`` and ``revoke`` need.
    A person who reaches the broker can then stop workers."""

    max_body_bytes: PositiveInt = 8 * MIB
    """Maximum size of a JSON body. Uploads and raw messages have limits of their own."""

    max_bodies_bytes: PositiveInt = 128 * MIB
    """Maximum size of all request bodies that one API process holds in memory at the same time, without the
    first 64 KiB of each and without uploads. Beyond it, requests get 503; one API key, or one address
    without a key, can have three quarters. At least ``COVEY_MAX_BODY_BYTES``
    is always allowed."""

    max_connections: PositiveInt = 4096
    """Maximum number of connections of one API process. At most two thirds of its limit of open files are
    used. If there are more, the connection that has waited longest without a request is closed."""

    keep_alive_seconds: PositiveSeconds = 75.0
    """Time for which a connection stays open without a request. It must be longer than that of a reverse
    proxy, so that the proxy closes the connection first."""

    max_upload_bytes: PositiveInt = 8 * GIB
    """Maximum size of an upload, as sent: the content of a data set, or a model artifact. After
    decompression, content can have four times this size."""

    max_examples: PositiveInt = 10_000_000
    """Maximum number of examples in a data set."""

    max_labels: PositiveInt = 20_000
    """Maximum number of labels in a data set, a label tree, a router's destinations or a feedback."""

    max_instances: PositiveInt = 1000
    """Maximum number of instances in one prediction request."""

    max_text_chars: PositiveInt = 1_000_000
    """Maximum number of characters of a text in a prediction request or a data set."""

    max_message_bytes: PositiveInt = 25 * MIB
    """Maximum size of a routed message. Covey reads a longer message up to this limit and marks it as
    truncated. A request of an e-mail provider, which can contain the parts of the message again, can have
    four times this size."""

    inbound_sendgrid_keys: str = ""
    """Public keys of SendGrid's security policies, in base64, separated by commas. The names of the routers
    that accept a key can follow it, separated by blanks; otherwise all do. Empty: SendGrid cannot deliver
    messages."""

    inbound_mailgun_keys: SecretStr = SecretStr("")
    """Webhook signing keys of Mailgun, separated by commas, each with its routers as above. Empty: Mailgun
    cannot deliver messages."""

    inbound_postmark_credentials: SecretStr = SecretStr("")
    """Credentials in the URL that Postmark calls, as ``user:password``, separated by commas, each with its
    routers as above. Empty: Postmark cannot deliver messages."""

    inbound_ses_certificates: Path | None = None
    """File with the certificates (PEM) of Amazon SNS. It is read for each message, so you can replace it at
    any time. Empty: Amazon SES cannot deliver messages."""

    inbound_ses_topics: str = ""
    """ARNs of the topics of Amazon SNS that Amazon SES publishes to, separated by commas, each with its
    routers as above. Empty: Amazon SES cannot deliver messages."""

    models_in_memory: PositiveInt = 8
    """Number of model versions that one API process keeps loaded."""

    offline_seconds: PositiveSeconds = 3600.0
    """Time for which an API process continues to authenticate and predict while the database is unavailable.
    A key that is deleted in this time remains valid in a process that cannot reach the database. Afterwards
    requests get 503."""

    keep_decision_text: bool = True
    """Whether decisions store text of the message: its subject and the terms of the explanation. Labels and
    scores are always stored. The response to a message is not affected."""

    encryption_key: SecretStr = SecretStr("")
    """Key that encrypts kept messages in the storage, and secrets of webhooks in the database: 32 bytes in
    base64, such as ``openssl rand -base64 32`` prints. Several keys are separated by commas: the first one
    encrypts, and all of them decrypt. Empty: neither is encrypted."""

    rate_per_minute: NonNegativeInt = 0
    """Maximum requests per minute of one API key; also the largest burst. 0: no limit."""

    requests_at_once: NonNegativeInt = 0
    """Maximum simultaneous requests of one API key. 0: no limit."""

    jobs_in_flight: NonNegativeInt = 0
    """Maximum unfinished jobs of one API key. Each cell of an experiment and each ingestion counts. 0: no
    limit."""

    max_event_streams: PositiveInt = 1000
    """Maximum number of event streams of one API process; one API key can have a tenth of them. Requests
    without a key count as one key. If the limit is reached, the response is 429."""

    limits_url: SecretStr = SecretStr("")
    """URL of the Redis that counts requests. Empty: the broker, which must then be Redis or Valkey."""

    protocols: str = ",".join(PROTOCOLS)
    """Protocols of other projects that the API serves, separated by commas: ``open_inference`` at ``/v2``,
    and ``label_studio`` at ``/label-studio``. Empty: none."""

    oidc_issuer: str = ""
    """URL of the OpenID provider with which people sign in to the console, such as
    ``https://id.example.org/realms/example``. Empty: people sign in with an API key. With a provider, every
    request needs a key or a person who has signed in, also on loopback."""

    oidc_client_id: str = ""
    """Id of this service at the OpenID provider, which sends people back to ``/console/sign-in/callback``."""

    oidc_client_secret: SecretStr = SecretStr("")
    """Secret of this service at the OpenID provider. Empty: it is a public client and has none."""

    oidc_claim: str = "groups"
    """Claim of the ID token whose values ``COVEY_OIDC_ROLES`` maps to roles."""

    oidc_roles: str = ""
    """Roles by the values of the claim, as ``value=role``, separated by commas. Roles are ``reader``,
    ``reviewer``, ``editor`` and ``admin``; if several values match, the person has the role that permits
    most. The role follows the provider at each sign-in. Empty: administrators give roles in the console."""

    oidc_default_role: Role | Literal[""] = ""
    """Role of people for whom no value of the claim matches, or of new people if ``COVEY_OIDC_ROLES`` is
    empty. Empty: such people cannot sign in."""

    oidc_email_domains: str = ""
    """Domains of e-mail addresses whose owners can sign in, separated by commas. Empty: everyone with a role
    can."""

    cors_origins: str = ""
    """Origins whose web pages can call the service (CORS), separated by commas. Empty: none."""

    allowed_hosts: str = ""
    """Names of hosts that requests can use before the first API key exists, separated by commas. Loopback
    addresses and ``localhost`` are always allowed. With API keys, every name is allowed."""

    root_path: str = ""
    """Path below which a proxy serves Covey, such as ``/tools/covey``. The proxy can remove it from the paths
    of requests, or leave it. Empty: none, or what a trusted proxy states in ``X-Forwarded-Prefix``."""

    trusted_proxies: str = "127.0.0.1,::1"
    """Addresses and networks of proxies whose headers ``X-Forwarded-Proto``, ``X-Forwarded-For`` and
    ``X-Forwarded-Prefix`` count, separated by commas. ``*``: every client is a proxy."""

    webhooks_allow_private: bool = False
    """Whether webhooks can send to private, loopback and link-local addresses. Set it only if every holder of
    a key with the scope ``admin`` may reach the network of the workers."""

    ready_queue_seconds: PositiveSeconds = 60.0
    """If a job waits longer than this although a worker has capacity, readiness returns 503."""

    @field_validator("root_path")
    @classmethod
    def _strip_root_path(cls, value: str) -> str:
        return value.rstrip("/")

    @field_validator(*_CHECKS)
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        _CHECKS[info.field_name or ""](text)
        return value

    @field_validator(*_LISTS)
    @classmethod
    def _check_each(cls, value: str, info: ValidationInfo) -> str:
        for name in split(value):
            _LISTS[info.field_name or ""](name)
        return value

    @field_validator(*_PROVIDERS)
    @classmethod
    def _check_entries(cls, value: Any, info: ValidationInfo) -> Any:
        check_key, example = _PROVIDERS[info.field_name or ""]
        for number, entry in enumerate(split(value), start=1):
            checks.check_provider_entry(number, entry, check_key, example)
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if bool(self.inbound_ses_topics) != (self.inbound_ses_certificates is not None):
            raise ValueError(
                "COVEY_INBOUND_SES_TOPICS and COVEY_INBOUND_SES_CERTIFICATES have an effect only together"
            )
        return self

    @field_validator("protocols")
    @classmethod
    def _check_protocols(cls, value: str) -> str:
        if unknown := set(split(value)) - set(PROTOCOLS):
            raise ValueError(f"{min(unknown)} is not one of {', '.join(PROTOCOLS)}")
        return value

    @field_validator("encryption_key")
    @classmethod
    def _check_keys(cls, value: SecretStr) -> SecretStr:
        for number, key in enumerate(split(value), start=1):
            if (found := _decode(key)) is None or len(found) != KEY_BYTES:
                raise ValueError(
                    f"key {number} must be {KEY_BYTES} bytes in base64; "
                    f"`openssl rand -base64 {KEY_BYTES}` prints a new one"
                )
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _check_issuer(cls, value: str) -> str:
        parts = urlsplit(value)
        is_local = parts.hostname in {"127.0.0.1", "::1", "localhost"}
        if value and not (
            parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and is_local))
        ):
            raise ValueError("must be a URL that begins with https://")
        return value

    @field_validator("oidc_roles")
    @classmethod
    def _check_roles(cls, value: str) -> str:
        for item in split(value):
            name, _, role = item.rpartition("=")
            if not name.strip() or role.strip() not in ROLES:
                raise ValueError(f"{item} is not VALUE=ROLE with one of the roles {', '.join(ROLES)}")
        return value

    @model_validator(mode="after")
    def _check_oidc(self) -> Self:
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("COVEY_OIDC_ISSUER needs COVEY_OIDC_CLIENT_ID")
        if self.oidc_issuer and not (self.oidc_roles or self.oidc_default_role):
            raise ValueError("no person could sign in: set COVEY_OIDC_ROLES or COVEY_OIDC_DEFAULT_ROLE")
        return self

    def oidc_role_of(self) -> dict[str, Role]:
        """Return the role of each value of the claim."""
        found = {}
        for item in split(self.oidc_roles):
            value, _, name = item.rpartition("=")
            found[value.strip()] = next(role for role in ROLES if role == name.strip())
        return found

    def served_protocols(self) -> list[Protocol]:
        """Return the protocols of other projects that the API serves."""
        names = split(self.protocols)
        return [protocol for protocol in PROTOCOLS if protocol in names]

    def encryption_keys(self) -> list[bytes]:
        """Return the keys of kept messages: the first one encrypts, and all of them decrypt."""
        return [_decode(key) or b"" for key in split(self.encryption_key)]

    @property
    def heartbeat_seconds(self) -> float:
        """Time between heartbeats of a worker, and between renewals of its leases."""
        return min(1.0, self.lease_seconds / 8)

    @property
    def listens_on_loopback(self) -> bool:
        """Whether only this machine can reach the address to listen on."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def resolved_database_url(self) -> str:
        """Return the URL of the database, or of the embedded database if none is set."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.data_dir.resolve() / 'covey.db'}"


def invalid_settings(error: ValidationError) -> list[str]:
    """Return a line for each setting with an invalid value: its variable, and what is wrong."""
    lines = []
    for one in error.errors(include_url=False, include_input=False):
        reason = one["msg"].removeprefix("Value error, ").removeprefix("Input ")
        name = "_".join(str(part) for part in one["loc"])
        if one["type"] != "value_error" and name in Settings.model_fields:
            reason += f"; the default is {Settings.model_fields[name].default}"
        lines.append(f"{PREFIX}{name.upper()}: {reason}" if name else reason)
    return lines


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the variables that look like settings but are none, such as settings of an earlier release."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | CLIENT_VARIABLES
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known)


def split(setting: str | SecretStr) -> list[str]:
    """Split a setting that lists names or secrets, separated by commas."""
    names = setting.get_secret_value() if isinstance(setting, SecretStr) else setting
    return [name.strip() for name in names.split(",") if name.strip()]


def _decode(key: str) -> bytes | None:
    """Return the bytes of a key; None if it is not base64, with the alphabet of URLs or without."""
    try:
        return base64.b64decode(key.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        return None


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the settings of the process. The environment is read only once."""
    return Settings()
