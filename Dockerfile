# syntax=docker/dockerfile:1
# One image for the API, the worker and the migration. Build it with: docker build -t covey .
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
RUN python -m venv /opt/covey
COPY requirements/run.lock requirements/run.lock
RUN /opt/covey/bin/pip install --require-hashes --requirement requirements/run.lock
COPY pyproject.toml hatch_build.py README.md ./
COPY covey covey
COPY app app
COPY workers workers
COPY models models
COPY migrations migrations
RUN /opt/covey/bin/pip install --no-deps --no-build-isolation .

FROM python:3.13-slim
ENV PATH=/opt/covey/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    COVEY_DATA_DIR=/var/lib/covey
RUN useradd --system --uid 10001 --home-dir /var/lib/covey --create-home covey
COPY --from=build /opt/covey /opt/covey
USER 10001
WORKDIR /var/lib/covey
VOLUME /var/lib/covey
EXPOSE 8000
# The worker has no port. Disable or replace this check in its container; see deploy/compose.yaml.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/live', timeout=3)"]
ENTRYPOINT ["covey"]
# On a non-loopback address the API does not start without an API key:
# docker run … covey keys create --name first --scope admin
CMD ["api", "--host", "0.0.0.0", "--port", "8000"]
