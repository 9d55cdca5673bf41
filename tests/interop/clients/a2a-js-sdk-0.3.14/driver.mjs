/**
 * Drives the official JavaScript SDK of A2A 0.3 against one agent and prints what its caller saw, as one JSON document.
 *
 *     node driver.mjs AGENT_URL JSONRPC|HTTP+JSON|A2AClient [SCENARIO[=VALUE] ...]
 *
 * `A2AClient` is the SDK's older client, JSON-RPC only; the other two are clients of its factory.
 * The scenarios, their names and the shape of what they report are those of ../a2a-sdk-0.3.26/driver.py.
 */
import { randomUUID } from 'node:crypto';
import * as sdk from '@a2a-js/sdk/client';

const UNKNOWN_TASK = '0198f0a0-0000-7000-8000-000000000000';
const ERROR_TYPES = [
  'TaskNotFoundError', 'TaskNotCancelableError', 'UnsupportedOperationError', 'PushNotificationNotSupportedError',
];
const DATA = {
  kind: 'file',
  role: 7,
  status: null,
  nested: { list: [1, '2', { three: 3.5 }, [], {}], yes: true },
  größe: '名前 🕊\u2028',
};

const [agentUrl, binding, ...wanted] = process.argv.slice(2);
const cardBase = `${agentUrl}/`; // this SDK resolves the card's path against it, so the final slash counts
const calls = new Set();

async function fetchImpl(input, init) {
  calls.add(`${init?.method ?? 'GET'} ${new URL(input).pathname}`);
  return fetch(input, init);
}

const cardResolver = new sdk.DefaultAgentCardResolver({ fetchImpl });
const agentCard = await cardResolver.resolve(cardBase);

/** The older client with the face of the newer ones: it wraps every answer in a JSON-RPC response, errors too. */
async function olderClient() {
  const older = await sdk.A2AClient.fromCardUrl(`${cardBase}.well-known/agent-card.json`, { fetchImpl });
  const unwrapped = (method) => async (params) => {
    const response = await older[method](params);
    if ('error' in response) throw new ReturnedError(response.error);
    return response.result;
  };
  return {
    sendMessage: unwrapped('sendMessage'),
    getTask: unwrapped('getTask'),
    cancelTask: unwrapped('cancelTask'),
    sendMessageStream: (params) => older.sendMessageStream(params),
    resubscribeTask: (params) => older.resubscribeTask(params),
    getAgentCard: () => older.getAgentCard(),
    // As the newer clients, it refuses this one for the card's sake: what it would use is asked instead.
    transport: new sdk.JsonRpcTransport({ endpoint: agentCard.url, fetchImpl }),
  };
}

class ReturnedError extends Error {
  constructor({ code, message }) {
    super(`${message} (Code: ${code})`);
    this.code = code;
  }
}

const transport = binding === 'JSONRPC' ? sdk.JsonRpcTransportFactory : sdk.RestTransportFactory;
const clientFor = (clientConfig) =>
  new sdk.ClientFactory({ transports: [new transport({ fetchImpl })], clientConfig, cardResolver }).createFromAgentCard(agentCard);
const client = binding === 'A2AClient' ? await olderClient() : await clientFor({});
// The newer clients set `blocking` themselves, as they are configured; the older one leaves it to its caller.
const polling = binding === 'A2AClient' ? client : await clientFor({ polling: true });

const textPart = (text) => ({ kind: 'text', text });
const userMessage = (parts, members = {}) => ({ kind: 'message', messageId: randomUUID(), role: 'user', parts, ...members });

function sendMessage(message, { now = false, historyLength, metadata } = {}) {
  const params = { message, metadata };
  if (historyLength !== undefined) params.configuration = { historyLength };
  if (now && binding === 'A2AClient') params.configuration = { ...params.configuration, blocking: false };
  return (now ? polling : client).sendMessage(params);
}

const send = (text, { now, ...ids } = {}) => sendMessage(userMessage([textPart(text)], ids), { now });
const get = (id, options = {}) => client.getTask({ id, ...options });
const cancelTask = (id) => client.cancelTask({ id });
const resubscribeTo = (id) => collect(client.resubscribeTask({ id }));
const stream = (text, ids) => collect(client.sendMessageStream({ message: userMessage([textPart(text)], ids) }));

async function collect(events) {
  const seen = [];
  for await (const event of events) seen.push(structuredClone(event));
  return seen;
}

/** The type of the error that the SDK raised, or that it names as the cause; or what came instead of one. */
async function errorOf(act) {
  try {
    return { type: null, answer: JSON.stringify(await act()) };
  } catch (error) {
    const type = ERROR_TYPES.find((name) => error instanceof sdk[name] || error.cause instanceof sdk[name]);
    return { type: type ?? error.constructor.name, code: error.code, message: error.message };
  }
}

async function finished(id) {
  for (;;) {
    const task = await get(id);
    if (!['submitted', 'working'].includes(task.status.state)) return task;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function history() {
  const sent = await sendMessage(userMessage([textPart('slow 1')]));
  return {
    sent,
    'sent two': await sendMessage(userMessage([textPart('slow 1')]), { historyLength: 2 }),
    absent: await get(sent.id),
    zero: await get(sent.id, { historyLength: 0 }),
    one: await get(sent.id, { historyLength: 1 }),
  };
}

async function cancel() {
  const running = await send('slow 30', { now: true });
  const started = performance.now();
  const canceled = await cancelTask(running.id);
  const seconds = (performance.now() - started) / 1000;
  return { seconds, running, canceled, read: await get(running.id), again: await errorOf(() => cancelTask(running.id)) };
}

async function errors() {
  const done = await send('done soon');
  const pushNotificationConfig = { id: 'hook', url: 'http://127.0.0.1:9/hook' };
  return {
    'get unknown': await errorOf(() => get(UNKNOWN_TASK)),
    'cancel unknown': await errorOf(() => cancelTask(UNKNOWN_TASK)),
    'resubscribe unknown': await errorOf(() => resubscribeTo(UNKNOWN_TASK)),
    'message to unknown': await errorOf(() => send('more', { taskId: UNKNOWN_TASK })),
    'stream to unknown': await errorOf(() => stream('more', { taskId: UNKNOWN_TASK })),
    'message to finished': await errorOf(() => send('more', { taskId: done.id })),
    'cancel finished': await errorOf(() => cancelTask(done.id)),
    // The transport itself: the client refuses for the card's sake, before it asks the server.
    'push set': await errorOf(() => client.transport.setTaskPushNotificationConfig({ taskId: done.id, pushNotificationConfig })),
  };
}

/** Files and data there and back: the agent echoes every part. */
async function parts() {
  const contents = {
    binary: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
    base64: Buffer.from(Buffer.from('text that is base64 itself').toString('base64')),
    empty: Buffer.alloc(0),
  };
  const sent = Object.entries(contents).map(([name, content]) => ({
    kind: 'file', file: { bytes: content.toString('base64'), mimeType: 'application/octet-stream', name },
  }));
  sent.push(
    { kind: 'file', file: { uri: 'https://example.org/a%20b?c=d', mimeType: 'image/png', name: 'link' } },
    { kind: 'data', data: DATA, metadata: { origin: { kind: 'part' } } },
  );
  const message = userMessage(sent, { metadata: { trace: { kind: 'x', n: 3, list: [1, null] } } });
  const task = await sendMessage(message, { metadata: { request: 'wide' } });
  return { sent: message, task, read: await get(task.id) };
}

const read = (ids) => Promise.all(ids.split(',').map((id) => get(id)));

const STANDARD = {
  card: async () => agentCard,
  own_card: () => client.getAgentCard(),
  echo: (text) => send(text || 'A dragoman carries words, not opinions. Größe: 名前 🕊'),
  async not_blocking() {
    const started = performance.now();
    const first = await send('slow 2', { now: true });
    return { seconds: (performance.now() - started) / 1000, first, last: await finished(first.id) };
  },
  async stream_chunks() {
    const events = await stream('stream 5');
    return { events, task: await get(events[0].id) };
  },
  stream_progress: () => stream('slow 1'),
  history,
  cancel,
  async resubscribe() {
    const running = await send('slow 2', { now: true });
    return { running, events: await resubscribeTo(running.id) };
  },
  async resubscribe_finished() {
    const done = await send('all done');
    return { done, events: await resubscribeTo(done.id) };
  },
  errors,
  bare_message: async () => ({ sent: await send('message hello'), streamed: await stream('message hello') }),
  async same_context() {
    const first = await send('first turn');
    return { first, second: await send('second turn', { contextId: first.contextId }) };
  },
  /** The same message twice, then another one under its id. */
  async repeat() {
    const message = userMessage([textPart('once only')]);
    const first = await sendMessage(message);
    const second = await sendMessage(message);
    const changed = { ...message, parts: [textPart('something else')] };
    return { first, second, changed: await errorOf(() => sendMessage(changed)) };
  },
  outcomes: async () => ({ fail: await send('fail'), reject: await send('reject'), crash: await send('crash') }),
  artifacts: async () => ({
    file: (await send('file')).artifacts,
    'data words words': (await send('data words words')).artifacts,
    'big 256': (await send('big 256')).artifacts,
  }),
  parts,
};
const SCENARIOS = {
  ...STANDARD,
  read,
  /** Two turns with an agent that asks, the second one streamed; and its question as the end of a stream. */
  async dialogue() {
    const asked = await send('a journey');
    const ids = { taskId: asked.id, contextId: asked.contextId };
    return {
      asked,
      'asked again': await send('Rome', ids),
      streamed: await stream('Monday', ids),
      read: await get(asked.id),
      'streamed question': await stream('a journey'),
    };
  },
  /** A task that waits for its caller while that one watches: answered beside the open stream. */
  async answer_within_stream() {
    const events = [];
    for await (const event of client.sendMessageStream({ message: userMessage([textPart('open up')]) })) {
      events.push(event);
      if (event.status?.state === 'auth-required') {
        await send('a friend', { taskId: events[0].id, contextId: events[0].contextId });
      }
    }
    return events;
  },
  /** Finish tasks of several kinds in one context, then read them back. */
  async leave(contextId) {
    const ids = [];
    for (const text of ['keep this', 'stream 5', 'fail', 'file', 'data']) ids.push((await send(text, { contextId })).id);
    return read(ids.join(','));
  },
  /** Watch a task that somebody else started, and cancel it once it is seen. */
  async follow_and_cancel(id) {
    const events = [];
    let canceled;
    for await (const event of client.resubscribeTask({ id })) {
      events.push(event);
      canceled ??= await cancelTask(id);
    }
    return { events, canceled };
  },
};

const chosen = wanted.length ? wanted.map((item) => item.split(/=(.*)/s)) : Object.keys(STANDARD).map((name) => [name]);
const results = await Promise.all(
  chosen.map(([name, value]) => SCENARIOS[name](value).catch((error) => ({ raised: error.stack }))),
);
const report = Object.fromEntries(chosen.map(([name], index) => [name, results[index]]));
process.stdout.write(`${JSON.stringify({ ...report, calls: [...calls].sort() })}\n`);
