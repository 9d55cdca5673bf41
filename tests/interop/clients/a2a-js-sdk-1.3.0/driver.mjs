/**
 * Drives the official JavaScript SDK against one agent and prints what its caller saw, as one JSON document.
 *
 *     node driver.mjs AGENT_URL JSONRPC|HTTP+JSON[@VERSION] [SCENARIO[=VALUE] ...]
 *
 * The scenarios, their names and the shape of what they report are those of ../a2a-sdk/driver.py, and so is AGENT_BEARER.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  AgentCard, CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, Message, SendMessageRequest,
  StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory,
} from '@a2a-js/sdk/client';
import * as sdkErrors from '@a2a-js/sdk/errors';

const UNKNOWN_TASK = '0198f0a0-0000-7000-8000-000000000000';
const UNFINISHED = ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'];
const ERROR_TYPES = [
  'TaskNotFoundError', 'TaskNotCancelableError', 'UnsupportedOperationError', 'PushNotificationNotSupportedError',
];

const [agentUrl, bindingAndVersion, ...wanted] = process.argv.slice(2);
const [binding, version] = bindingAndVersion.split('@');
const cardBase = `${agentUrl}/`; // this SDK resolves the card's path against it, so the final slash counts
const calls = new Set();

async function fetchImpl(input, init) {
  const request = new Request(input, init);
  if (process.env.AGENT_BEARER) request.headers.set('Authorization', `Bearer ${process.env.AGENT_BEARER}`);
  calls.add(`${request.method} ${new URL(request.url).pathname}`);
  return fetch(request);
}

const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
const transport = binding === 'JSONRPC' ? JsonRpcTransportFactory : RestTransportFactory;
// Older interfaces are only for those who ask for them.
const transports = [new transport({ fetchImpl, legacyCompat: { enabled: version !== undefined } })];
const factory = new ClientFactory({ transports, cardResolver });
const client = await (version ? factory.createFromAgentCard(await cardOf(version)) : factory.createFromUrl(cardBase));

async function cardOf(protocolVersion) {
  const card = await cardResolver.resolve(cardBase);
  card.supportedInterfaces = card.supportedInterfaces.filter((each) => each.protocolVersion === protocolVersion);
  return card;
}

function sendRequest(parts, { now = false, messageId = randomUUID(), ...ids } = {}) {
  const message = { messageId, role: 'ROLE_USER', parts, ...ids };
  return SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: now } });
}

async function sendParts(parts, options) {
  const answer = await client.sendMessage(sendRequest(parts, options));
  return 'messageId' in answer ? { message: Message.toJSON(answer) } : { task: Task.toJSON(answer) };
}

const send = (text, options) => sendParts([{ text }], options);
const sendTask = async (text, options) => (await send(text, options)).task;
const get = async (id, options = {}) => Task.toJSON(await client.getTask(GetTaskRequest.fromJSON({ id, ...options })));
const cancelTask = async (id) => Task.toJSON(await client.cancelTask(CancelTaskRequest.fromJSON({ id })));
const list = async (filters) => ListTasksResponse.toJSON(await client.listTasks(ListTasksRequest.fromJSON(filters)));
const subscribeTo = (id) => collect(client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id })));
const streamText = (text) => collect(client.sendMessageStream(sendRequest([{ text }])));

async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(StreamResponse.toJSON(event));
  return events;
}

/** The type and text of the error that the SDK raised, or that it names as the cause; or what came instead of one. */
async function errorOf(act) {
  try {
    return { type: null, answer: JSON.stringify(await act()) };
  } catch (error) {
    const type = ERROR_TYPES.find((name) => error instanceof sdkErrors[name] || error.cause instanceof sdkErrors[name]);
    return { type: type ?? error.name, message: error.message };
  }
}

async function finished(id) {
  for (;;) {
    const task = await get(id);
    if (!UNFINISHED.includes(task.status.state)) return task;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function listing() {
  const contextId = randomUUID();
  const sent = [];
  for (const text of ['one', 'two', 'fail', 'three', 'four']) sent.push((await sendTask(text, { contextId })).id);
  const pages = [await list({ contextId, pageSize: 2 })];
  while (pages.at(-1).nextPageToken && pages.length < 9) {
    pages.push(await list({ contextId, pageSize: 2, pageToken: pages.at(-1).nextPageToken }));
  }
  return {
    sent,
    pages,
    failed: await list({ contextId, status: 'TASK_STATE_FAILED' }),
    with_artifacts: await list({ contextId, includeArtifacts: true }),
    elsewhere: await list({ contextId: randomUUID() }),
    everything: await list({ pageSize: 1 }),
  };
}

/** As `listing`, where contexts are given out by the server: all that this caller has is listed. */
async function ownListing() {
  const sent = [];
  for (const text of ['one', 'two', 'fail', 'three', 'four']) sent.push(await sendTask(text));
  const pages = [await list({ pageSize: 2 })];
  while (pages.at(-1).nextPageToken && pages.length < 9) {
    pages.push(await list({ pageSize: 2, pageToken: pages.at(-1).nextPageToken }));
  }
  return {
    sent: sent.map((task) => task.id),
    pages,
    failed: await list({ status: 'TASK_STATE_FAILED' }),
    with_artifacts: await list({ includeArtifacts: true }),
    'of one context': await list({ contextId: sent[1].contextId }),
  };
}

async function cancel() {
  const running = await sendTask('slow 30', { now: true });
  const started = performance.now();
  const canceled = await cancelTask(running.id);
  const seconds = (performance.now() - started) / 1000;
  return { seconds, running, canceled, read: await get(running.id), again: await errorOf(() => cancelTask(running.id)) };
}

async function errors() {
  const done = await sendTask('done soon');
  const config = TaskPushNotificationConfig.fromJSON({ taskId: done.id, url: 'http://127.0.0.1:9/hook' });
  return {
    'get unknown': await errorOf(() => get(UNKNOWN_TASK)),
    'cancel unknown': await errorOf(() => cancelTask(UNKNOWN_TASK)),
    'subscribe unknown': await errorOf(() => subscribeTo(UNKNOWN_TASK)),
    'message to unknown': await errorOf(() => send('more', { taskId: UNKNOWN_TASK })),
    'message to finished': await errorOf(() => send('more', { taskId: done.id })),
    'subscribe finished': await errorOf(() => subscribeTo(done.id)),
    'cancel finished': await errorOf(() => cancelTask(done.id)),
    'push create': await errorOf(() => client.createTaskPushNotificationConfig(config)),
  };
}

/** A configuration that comes with a message, and one that is created, read, listed and deleted. */
async function push(url) {
  const authentication = { scheme: 'Bearer', credentials: 's3cr3t' };
  const request = sendRequest([{ text: 'stream 3' }]);
  request.configuration.taskPushNotificationConfig = TaskPushNotificationConfig.fromJSON({
    id: 'sent', url, token: 't0k3n', authentication,
  });
  const task = Task.toJSON(await client.sendMessage(request));
  const made = TaskPushNotificationConfig.fromJSON({ taskId: task.id, id: 'made', url, authentication });
  const one = { tenant: '', taskId: task.id, id: 'made' };
  const both = { tenant: '', taskId: task.id, pageSize: 0, pageToken: '' };
  const read = async () => TaskPushNotificationConfig.toJSON(await client.getTaskPushNotificationConfig(one));
  const listed = async () => ({
    configs: (await client.listTaskPushNotificationConfig(both)).configs.map((each) => TaskPushNotificationConfig.toJSON(each)),
  });
  const seen = {
    task,
    created: TaskPushNotificationConfig.toJSON(await client.createTaskPushNotificationConfig(made)),
    read: await read(),
    listed: await listed(),
  };
  for (let time = 0; time < 2; time += 1) await client.deleteTaskPushNotificationConfig(one);
  return { ...seen, 'read after': await errorOf(read), 'listed after': await listed() };
}

const STANDARD = {
  card: async () => AgentCard.toJSON(await cardResolver.resolve(cardBase)),
  echo: (text) => send(text || 'A dragoman carries words, not opinions. Größe: 名前 🕊'),
  async return_immediately() {
    const started = performance.now();
    const first = await sendTask('slow 2', { now: true });
    return { seconds: (performance.now() - started) / 1000, first, last: await finished(first.id) };
  },
  async stream_chunks() {
    const events = await streamText('stream 5');
    return { events, task: await get(events[0].task.id) };
  },
  stream_progress: () => streamText('slow 1'),
  async history() {
    const { id } = await sendTask('remember this');
    return { absent: await get(id), zero: await get(id, { historyLength: 0 }), one: await get(id, { historyLength: 1 }) };
  },
  listing,
  cancel,
  async subscribe() {
    const running = await sendTask('slow 2', { now: true });
    return { running, events: await subscribeTo(running.id) };
  },
  errors,
  bare_message: async () => ({ sent: await send('message hello'), streamed: await streamText('message hello') }),
  async same_context() {
    const first = await sendTask('first turn');
    return { first, second: await sendTask('second turn', { contextId: first.contextId }) };
  },
  /** The same message twice, then another one under its id. */
  async repeat() {
    const messageId = randomUUID();
    const first = await send('once only', { messageId });
    const second = await send('once only', { messageId });
    return { first, second, changed: await errorOf(() => send('something else', { messageId })) };
  },
  outcomes: async () => ({
    fail: await sendTask('fail'), reject: await sendTask('reject'), crash: await sendTask('crash'),
  }),
  artifacts: async () => ({
    file: (await sendTask('file')).artifacts,
    data: (await sendTask('data')).artifacts,
    'big 256': (await sendTask('big 256')).artifacts,
  }),
};
const SCENARIOS = {
  ...STANDARD,
  own_listing: ownListing,
  push,
  /** Markdown goes as a file's bytes, everything else as text. */
  digest: (path) => (path.endsWith('.md')
    ? sendParts([{ raw: readFileSync(path).toString('base64'), mediaType: 'text/markdown', filename: basename(path) }])
    : send(readFileSync(path, 'utf8'))),
  /** Files, an address and data there and back: the agent echoes every part. */
  async parts() {
    const contents = { binary: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), base64: 'dGV4dA==', empty: '' };
    const sent = Object.entries(contents).map(([filename, content]) => ({
      raw: Buffer.from(content).toString('base64'), mediaType: 'application/octet-stream', filename,
    }));
    sent.push({ url: 'https://example.org/a%20b?c=d', mediaType: 'image/png', filename: 'link' });
    sent.push({ data: { kind: 'file', n: [1, null] } }, { data: [1, '2'] });
    const { task } = await sendParts(sent);
    return { sent: { parts: sent }, task, read: await get(task.id) };
  },
};

const chosen = wanted.length ? wanted.map((item) => item.split(/=(.*)/s)) : Object.keys(STANDARD).map((name) => [name]);
const results = await Promise.all(
  chosen.map(([name, value]) => SCENARIOS[name](value).catch((error) => ({ raised: error.stack }))),
);
const report = Object.fromEntries(chosen.map(([name], index) => [name, results[index]]));
process.stdout.write(`${JSON.stringify({ ...report, calls: [...calls].sort() })}\n`);
