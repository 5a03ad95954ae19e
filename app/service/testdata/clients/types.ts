// Places an order and pays for it, with nothing but types that were generated from the service's own document.
import type { components, paths } from './pawl.js';

const [base, customer] = process.argv.slice(2) as [string, string];

type Place = paths['/v1/workflows/order/place']['post'];
type Pay = paths['/v1/workflows/order/keys/{business_key}/pay']['post'];
type Shown = paths['/v1/workflows/{workflow}/keys/{business_key}']['get'];
type Body<O extends { requestBody?: { content: { 'application/json': unknown } } }> = NonNullable<O['requestBody']>['content']['application/json'];
type Problem = Place['responses'][409]['content']['application/problem+json'];
type Result = components['schemas']['Result'];
type Status = components['schemas']['CommandStatus'];

async function submit<B>(path: keyof paths, parts: Record<string, string>, key: string, body: B): Promise<Result | Status> {
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts[name]!));
  const answer = await fetch(base + url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, Prefer: 'wait=60' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) {
    const problem = (await answer.json()) as Problem;
    switch (problem.code) {
      case 'guard_refused':
        throw new Error('refused: ' + problem.detail);
      default:
        throw new Error(problem.code + ': ' + problem.detail);
    }
  }
  return (await answer.json()) as Result | Status;
}

const order: Body<Place> = { customer, cart: '7', total: 129900, currency: 'EUR' };
const number = { business_key: customer + ':7' };
await submit('/v1/workflows/order/place', {}, 'place-' + customer, order);

// @ts-expect-error: what the schema does not allow is refused before it is sent
const wrong: Body<Pay> = { method: 'barter' };
void wrong;

const card: Body<Pay> = { method: 'card' };
await submit('/v1/workflows/order/keys/{business_key}/pay', number, 'pay-' + customer, card);

const answer = await fetch(base + '/v1/workflows/order/keys/' + encodeURIComponent(number.business_key));
const shown = (await answer.json()) as Shown['responses'][200]['content']['application/json'];
console.log(shown.workflow, shown.state, shown.version);
