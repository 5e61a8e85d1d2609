// Drives a running service through the whole path with openapi-fetch and the types of openapi-typescript.
// Arguments: the address of the service, the file of examples, the file of a raw message.
import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, paths } from './generated/openapi-fetch';

type JobEvent = components['schemas']['JobEvent'];
type Problem = components['schemas']['Problem'];

const [url = '', examples = '', message = ''] = process.argv.slice(2);
const model = 'by-openapi-fetch';
const client = createClient<paths>({ baseUrl: url });
const BYTES = { 'Content-Type': 'application/octet-stream' };
const unchanged = (body: unknown): BodyInit => body as BodyInit;

function expectData<T>(result: { data?: T; error?: Problem }): T {
  assert.equal(result.error, undefined);
  assert.ok(result.data !== undefined);
  return result.data;
}

function expectProblem(problem: Problem | undefined, status: number, code: string): Problem {
  assert.ok(problem, `no problem, but ${status} was expected`);
  assert.deepEqual([problem.status, problem.code], [status, code]);
  return problem;
}

async function uploadExamples(): Promise<string> {
  const { id: dataset_id } = expectData(await client.POST('/v1/datasets', { body: { name: model } }));
  const early = await client.POST('/v1/training-jobs', {
    body: { model, dataset_id, learner: { algorithm: 'mp_boost' } },
  });
  expectProblem(early.error, 409, 'dataset_not_ready');
  const params = { path: { dataset_id } };
  const uploaded = await client.PUT('/v1/datasets/{dataset_id}/content', {
    params,
    body: await openAsBlob(examples), // the blob reads the file while it is sent
    headers: BYTES,
    bodySerializer: unchanged,
  });
  expectData(uploaded);
  for (;;) {
    const dataset = expectData(await client.GET('/v1/datasets/{dataset_id}', { params }));
    if (dataset.state !== 'ingesting') {
      assert.equal(dataset.state, 'ready');
      assert.equal(dataset.n_examples, 80);
      return dataset_id;
    }
    await sleep(50);
  }
}

async function* follow(job_id: string): AsyncGenerator<JobEvent> {
  const { data, error } = await client.GET('/v1/training-jobs/{job_id}/events', {
    params: { path: { job_id } },
    headers: { Accept: 'text/event-stream' },
    parseAs: 'stream',
  });
  assert.equal(error, undefined);
  assert.ok(data);
  let text = '';
  for await (const chunk of data.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const line = event.split('\n').find((line) => line.startsWith('data: '));
      if (line) {
        yield JSON.parse(line.slice('data: '.length)) as JobEvent;
      }
    }
  }
}

async function train(dataset_id: string): Promise<number> {
  // @ts-expect-error A number of rounds is not a string.
  const wrong: components['schemas']['MPBoostParameters'] = { algorithm: 'mp_boost', rounds: 'many' };
  assert.ok(wrong);
  const refused = await client.POST('/v1/training-jobs', {
    body: { model, dataset_id, learner: { algorithm: 'mp_boost', rounds: 0 } },
  });
  const problem = expectProblem(refused.error, 422, 'invalid_request');
  assert.deepEqual(problem.errors?.map((error) => error.pointer), ['/learner/rounds']);

  const created = await client.POST('/v1/training-jobs', {
    params: { header: { 'Idempotency-Key': model } },
    body: {
      model,
      dataset_id,
      learner: { algorithm: 'mp_boost', rounds: 8 },
      features: { kind: 'text', selection: { kind: 'information_gain', per_label: 20 } },
      decision: { kind: 'at_least_one' },
      promote: 'never',
    },
  });
  const { id: job_id } = expectData(created);
  const types: string[] = [];
  for await (const event of follow(job_id)) {
    types.push(event.type);
  }
  assert.equal(types[0], 'queued');
  assert.equal(types.at(-1), 'succeeded');
  const params = { path: { job_id } };
  const ended = expectData(await client.GET('/v1/training-jobs/{job_id}', { params }));
  assert.equal(ended.state, 'succeeded');
  const version = ended.result?.version;
  assert.ok(version);
  return version;
}

async function promote(version: number): Promise<void> {
  const path = { name: model, alias: 'live' };
  const moved = await client.PUT('/v1/models/{name}/aliases/{alias}', { params: { path }, body: { version } });
  assert.equal(expectData(moved).version, version);
  const stale = await client.PUT('/v1/models/{name}/aliases/{alias}', {
    params: { path, header: { 'If-Match': '"stale"' } },
    body: { version },
  });
  expectProblem(stale.error, 412, 'precondition_failed');
  const revision = moved.response.headers.get('ETag') ?? '';
  const again = await client.PUT('/v1/models/{name}/aliases/{alias}', {
    params: { path, header: { 'If-Match': revision } },
    body: { version },
  });
  expectData(again);
}

async function route(): Promise<void> {
  const params = { path: { name: model } };
  const router = await client.PUT('/v1/routers/{name}', {
    params,
    body: { model, destinations: { shipping: 'ship@example.org' }, fallback: 'front@example.org' },
  });
  expectData(router);
  const routed = await client.POST('/v1/routers/{name}/messages', {
    params,
    body: await openAsBlob(message),
    headers: BYTES,
    bodySerializer: unchanged,
  });
  const decision = expectData(routed);
  assert.equal(decision.disposition, 'routed');
  assert.deepEqual(decision.destinations, ['ship@example.org']);
  assert.equal(decision.message.subject, 'Late parcel');
  const decided = { path: { decision_id: decision.decision_id } };
  const feedback = await client.POST('/v1/decisions/{decision_id}/feedback', {
    params: decided,
    body: { labels: ['billing'] },
  });
  expectData(feedback);
  const corrected = expectData(await client.GET('/v1/decisions/{decision_id}', { params: decided }));
  assert.deepEqual(corrected.feedback, ['billing']);

  const parts = await client.POST('/v1/routers/{name}/message-parts', {
    params,
    body: { email: { subject: 'parcel', text: 'the courier is late' } },
  });
  assert.equal(expectData(parts).disposition, 'routed');
}

async function main(): Promise<void> {
  const unknown = await client.GET('/v1/datasets/{dataset_id}', { params: { path: { dataset_id: 'ds_nope' } } });
  expectProblem(unknown.error, 404, 'not_found');
  const dataset_id = await uploadExamples();
  await promote(await train(dataset_id));
  await route();
  for (const deleted of [
    await client.DELETE('/v1/routers/{name}', { params: { path: { name: model } } }),
    await client.DELETE('/v1/models/{name}', { params: { path: { name: model } } }),
    await client.DELETE('/v1/datasets/{dataset_id}', { params: { path: { dataset_id } } }),
  ]) {
    assert.equal(deleted.response.status, 204);
  }
  console.log('the whole path works');
}

void main();
