// Places an order and pays for it with the functions that were generated from the service's own document.
import { client } from './sdk/client.gen.js';
import { getWorkflowsWorkflowKeysBusinessKey, orderPayByKey, orderPlace } from './sdk/sdk.gen.js';

const [base, customer] = process.argv.slice(2) as [string, string];
client.setConfig({ baseUrl: base });
const headers = (key: string) => ({ 'Idempotency-Key': key, Prefer: 'wait=60' });

const order = { customer, cart: '7', total: 129900, currency: 'EUR' };
const placed = await orderPlace({ headers: headers('place-' + customer), body: order });
if (!placed.data) throw new Error(JSON.stringify(placed.error));

const path = { business_key: customer + ':7' };
const paid = await orderPayByKey({ path, headers: headers('pay-' + customer), body: { method: 'card' } });
if (!paid.data) throw new Error(JSON.stringify(paid.error));

// The code tells the problems of a status apart.
const again = await orderPayByKey({ path, headers: headers('pay-again-' + customer), body: { method: 'card' } });
const problem = again.error;
if (problem?.code !== 'illegal_transition') throw new Error('paid twice: ' + JSON.stringify(again));
const status: 409 = problem.status;

const shown = await getWorkflowsWorkflowKeysBusinessKey({ path: { workflow: 'order', ...path } });
if (!shown.data) throw new Error(JSON.stringify(shown.error));
console.log(shown.data.workflow, shown.data.state, status);
