/**
 * Verifies and signs cards with the official JavaScript SDK, and prints one JSON document.
 *
 *     node signing.mjs verify AGENT_URL JWKS_FILE
 *     node signing.mjs sign CARD_FILE KEY_FILE
 *
 * What is verified, and the shape of what is reported, are those of ../a2a-sdk/signing.py.
 */
import { readFileSync } from 'node:fs';
import { generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client';

console.debug = () => {}; // the SDK tells there of every signature that is not good

const FORMS = { unnamed: undefined, '1.0': '1.0' };
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));

async function outcome(verifier, card) {
  try {
    await verifier(card);
    return 'good';
  } catch (error) {
    return error.message;
  }
}

async function verify(agentUrl, jwksFile) {
  const asked = new Set();
  const { keys } = read(jwksFile);
  const verifier = verifyAgentCardSignature(async (kid, jku) => {
    asked.add(jku ?? '');
    const key = keys.find((each) => each.kid === kid);
    if (!key) throw new Error(`${kid} is not pinned`);
    return key;
  });
  const report = {};
  for (const [name, version] of Object.entries(FORMS)) {
    const fetchImpl = (input, init) => {
      const request = new Request(input, init);
      if (version) request.headers.set('A2A-Version', version);
      else request.headers.delete('A2A-Version');
      return fetch(request);
    };
    // The verifier reads JSON. What the resolver makes of a 1.0 card with security schemes it would read without them.
    const card = await (await fetchImpl(`${agentUrl}/.well-known/agent-card.json`)).json();
    const resolved = await new DefaultAgentCardResolver({ fetchImpl }).resolve(`${agentUrl}/`);
    report[name] = {
      'as it came': await outcome(verifier, card),
      resolved: await outcome(verifier, resolved),
      name: resolved.name,
    };
    card.skills[0].description += '.';
    report[name].changed = await outcome(verifier, card);
  }
  return { ...report, jku: [...asked].sort() };
}

async function sign(cardFile, keyFile) {
  const key = read(keyFile);
  const signer = generateAgentCardSignature(key, { alg: key.alg, kid: key.kid, typ: 'JOSE' });
  return signer(read(cardFile));
}

const [act, ...rest] = process.argv.slice(2);
console.log(JSON.stringify(await { verify, sign }[act](...rest)));
