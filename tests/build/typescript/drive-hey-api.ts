// Drives a running service through the whole path with the client that @hey-api/openapi-ts generates.
// Arguments: the address of the service, the file of examples, the file of a raw message.
import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { client } from './generated/hey-api/client.gen';
import * as covey from './generated/hey-api';
import type { JobEvent, Problem } from './generated/hey-api';

const [url = '', examples = '', message = ''] = process.argv.slice(2);
const model = 'by-hey-api';
client.setConfig({ baseUrl: url });

function expectProblem(problem: Problem | undefined, status: number, code: string): Problem {
  assert.ok(problem, `no problem, but ${status} was expected`);
  assert.deepEqual([problem.status, problem.code], [status, code]);
  return problem;
}

async function uploadExamples(): Promise<string> {
  const created = await covey.datasetsCreate({ body: { name: model }, throwOnError: true });
  const dataset_id = created.data.id;
  const early = await covey.trainingJobsCreate({
    body: { model, dataset_id, learner: { algorithm: 'mp_boost' } },
  });
  expectProblem(early.error, 409, 'dataset_not_ready');
  // The blob reads the file while it is sent.
  await covey.datasetsUploadContent({
    path: { dataset_id },
    body: await openAsBlob(examples),
    throwOnError: true,
  });
  for (;;) {
    const { data } = await covey.datasetsGet({ path: { dataset_id }, throwOnError: true });
    if (data.state !== 'ingesting') {
      assert.equal(data.state, 'ready');
      assert.equal(data.n_examples, 80);
      return dataset_id;
    }
    await sleep(50);
  }
}

async function train(dataset_id: string): Promise<number> {
  // @ts-expect-error A number of rounds is not a string.
  const wrong: covey.MpBoostParameters = { algorithm: 'mp_boost', rounds: 'many' };
  assert.ok(wrong);
  const refused = await covey.trainingJobsCreate({
    body: { model, dataset_id, learner: { algorithm: 'mp_boost', rounds: 0 } },
  });
  const problem = expectProblem(refused.error, 422, 'invalid_request');
  assert.deepEqual(problem.errors?.map((error) => error.pointer), ['/learner/rounds']);

  const { data: job } = await covey.trainingJobsCreate({
    body: {
      model,
      dataset_id,
      learner: { algorithm: 'mp_boost', rounds: 8 },
      features: { kind: 'text', selection: { kind: 'information_gain', per_label: 20 } },
      decision: { kind: 'at_least_one' },
      promote: 'never',
    },
    headers: { 'Idempotency-Key': model },
    throwOnError: true,
  });
  const types: string[] = [];
  const { stream } = await client.sse.get<{ 200: JobEvent }>({
    url: '/v1/training-jobs/{job_id}/events',
    path: { job_id: job.id },
    headers: { Accept: 'text/event-stream' },
  });
  for await (const event of stream) {
    types.push(event.type);
  }
  assert.equal(types[0], 'queued');
  assert.equal(types.at(-1), 'succeeded');
  const ended = await covey.trainingJobsGet({ path: { job_id: job.id }, throwOnError: true });
  assert.equal(ended.data.state, 'succeeded');
  const version = ended.data.result?.version;
  assert.ok(version);
  return version;
}

async function promote(version: number): Promise<void> {
  const path = { name: model, alias: 'live' };
  const moved = await covey.modelsPutAlias({ path, body: { version }, throwOnError: true });
  assert.equal(moved.data.version, version);
  const stale = await covey.modelsPutAlias({ path, body: { version }, headers: { 'If-Match': '"stale"' } });
  expectProblem(stale.error, 412, 'precondition_failed');
  const revision = moved.response.headers.get('ETag') ?? '';
  await covey.modelsPutAlias({
    path,
    body: { version },
    headers: { 'If-Match': revision },
    throwOnError: true,
  });
}

async function route(): Promise<void> {
  await covey.routersPut({
    path: { name: model },
    body: { model, destinations: { shipping: 'ship@example.org' }, fallback: 'front@example.org' },
    throwOnError: true,
  });
  const { data: decision } = await covey.routersRouteMessage({
    path: { name: model },
    body: await openAsBlob(message),
    throwOnError: true,
  });
  assert.equal(decision.disposition, 'routed');
  assert.deepEqual(decision.destinations, ['ship@example.org']);
  assert.equal(decision.message.subject, 'Late parcel');
  const path = { decision_id: decision.decision_id };
  await covey.decisionsGiveFeedback({ path, body: { labels: ['billing'] }, throwOnError: true });
  const corrected = await covey.decisionsGet({ path, throwOnError: true });
  assert.deepEqual(corrected.data.feedback, ['billing']);

  const as_parts = await covey.routersRouteMessageParts({
    path: { name: model },
    body: { email: { subject: 'parcel', text: 'the courier is late' } },
    throwOnError: true,
  });
  assert.equal(as_parts.data.disposition, 'routed');
}

async function main(): Promise<void> {
  const unknown = await covey.datasetsGet({ path: { dataset_id: 'ds_nope' } });
  expectProblem(unknown.error, 404, 'not_found');
  const dataset_id = await uploadExamples();
  await promote(await train(dataset_id));
  await route();
  await covey.routersDelete({ path: { name: model }, throwOnError: true });
  await covey.modelsDelete({ path: { name: model }, throwOnError: true });
  await covey.datasetsDelete({ path: { dataset_id }, throwOnError: true });
  console.log('the whole path works');
}

void main();
