"""Every setting of the service: an environment variable ``COVEY_…``, a default and a sentence."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Settings(BaseSettings):
    """What an operator may choose. Options on the command line come before the environment."""

    model_config = SettingsConfigDict(
        env_prefix="COVEY_", extra="ignore", frozen=True, use_attribute_docstrings=True
    )

    data_dir: Path = Path("covey-data")
    """Folder of the embedded stack: database, broker, storage, unless a URL says otherwise."""

    database_url: str = ""
    """SQLAlchemy URL of the database (SQLite or PostgreSQL); empty: a SQLite file in the data folder."""

    broker_url: str = ""
    """Celery URL of the broker (Redis, Valkey or RabbitMQ); empty: the bundled server on a socket."""

    storage_url: str = ""
    """Where files live: ``file:///folder``, or a bucket, ``s3://bucket/prefix?endpoint=…&region=…``, with
    credentials from the environment (``AWS_ACCESS_KEY_ID`` and the like); empty: a folder in the data
    folder."""

    storage_cache_dir: Path | None = None
    """Folder for local copies of files in a bucket; by default one in the data folder."""

    storage_cache_bytes: PositiveInt = 20 * GIB
    """Most that local copies take up; those in use are never removed and may exceed it."""

    host: str = "127.0.0.1"
    """Address to listen on. Anything but loopback is refused until an API key exists."""

    port: int = Field(default=8000, ge=0, le=65535)
    """Port to listen on; 0 picks a free one."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe event that is logged."""

    log_format: Literal["json", "console"] = "json"
    """JSON lines for machines, or coloured lines for people."""

    worker_concurrency: PositiveInt = 2
    """Jobs that one worker runs at a time."""

    job_threads: PositiveInt = 1
    """Threads that numerical libraries may use inside one job."""

    job_niceness: int = Field(default=10, ge=0, le=19)
    """How far jobs stand back where others want the processor, such as requests for predictions; 0: not at
    all."""

    job_attempts: PositiveInt = 10
    """How often a job's process may die without getting further before it fails with ``worker_lost``."""

    job_memory_bytes: NonNegativeInt = 0
    """Memory that a job's process may take before the job fails with ``out_of_memory``; 0: no limit."""

    job_seconds: NonNegativeFloat = 0.0
    """How long a job may run before it fails with ``out_of_time``; 0: no limit."""

    checkpoint_seconds: PositiveFloat = 5.0
    """How often a training keeps how far it has come; rarer where keeping it takes long."""

    drain_seconds: NonNegativeFloat = 0.0
    """How long the API still takes connections after SIGTERM, for balancers to see that it is not ready."""

    orphan_grace_seconds: PositiveFloat = 3600.0
    """How long a file that no row names is left alone before it is collected."""

    collect_seconds: PositiveFloat = 300.0
    """How often a worker collects files and rows that nobody needs any more."""

    lease_seconds: PositiveFloat = 8.0
    """How long a worker that falls silent keeps its claim on a job."""

    heartbeat_seconds: PositiveFloat = 1.0
    """How often a worker renews its claims and looks for jobs that nobody picked up."""

    cancel_grace_seconds: PositiveFloat = 20.0
    """How long a job may take to notice that it was cancelled before its process is ended."""

    max_body_bytes: PositiveInt = 32 * MIB
    """Largest request body, uploads and messages apart."""

    max_header_bytes: PositiveInt = 32 * KIB
    """Largest head of a request, all headers together."""

    max_upload_bytes: PositiveInt = 8 * GIB
    """Largest content of a data set as sent, compressed or not."""

    max_content_bytes: PositiveInt = 32 * GIB
    """Largest content of a data set once decompressed."""

    max_compression_ratio: PositiveInt = 200
    """Most bytes that one compressed byte of an upload may become."""

    max_record_bytes: PositiveInt = 32 * MIB
    """Largest record of a data set."""

    max_examples: PositiveInt = 10_000_000
    """Most examples of a data set."""

    max_labels: PositiveInt = 20_000
    """Most labels of a data set, of a tree, of a router's destinations and of a feedback."""

    max_features: PositiveInt = 5_000_000
    """Most features of a data set of numbers."""

    max_instances: PositiveInt = 1000
    """Most instances of one prediction request."""

    max_experiment_cells: PositiveInt = 1000
    """Most cells of one experiment: its configurations times its folds."""

    max_message_bytes: PositiveInt = 25 * MIB
    """Largest message that is routed; what is longer is read up to here and flagged as truncated."""

    max_artifact_bytes: PositiveInt = 4 * GIB
    """Largest model artifact that can be imported."""

    models_in_memory: PositiveInt = 8
    """Model versions that one API process keeps loaded."""

    keep_decision_text: bool = True
    """Whether decisions keep words of the message: its subject, and the terms of an explanation. Labels and
    scores are always kept, and the answer explains in any case."""

    rate_per_minute: NonNegativeInt = 0
    """Requests a minute of one API key, a minute's worth at once at most; 0: no limit."""

    requests_at_once: NonNegativeInt = 0
    """Requests of one API key that are answered at a time; 0: no limit."""

    jobs_in_flight: NonNegativeInt = 0
    """Jobs of one API key that wait or run at a time, each cell of an experiment counted; 0: no limit."""

    limits_url: str = ""
    """URL of the Redis that counts requests; empty: the broker, which has to be one then."""

    cors_origins: str = ""
    """Origins whose pages may call the service from a browser, parted by commas; empty: none."""

    ready_queue_seconds: PositiveFloat = 60.0
    """Readiness turns 503 when a job has waited this long although a worker has room for it."""

    def resolved_database_url(self) -> str:
        """The database's URL, the embedded default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir.resolve() / 'covey.db'}"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The process's settings, read once."""
    return Settings()
