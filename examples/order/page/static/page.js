// The shop's backend takes an order and answers with a ticket for that one order. With it the page asks Pawl
// itself: it reads the order, follows it live, pays and cancels it.
//
// What others have written, such as a reason, is shown as textContent and never becomes HTML.

const $ = (id) => document.getElementById(id);

let order; // what is followed: its cart, its number, and a ticket that is good for so many seconds
let version = 0; // of the newest transition that is shown
let after = 0; // the cursor: everything up to this position of the log has been seen
let failures = 0; // since everything was seen
let socket, renewal, offering;

// The intention of who clicks, however often: it is another one when the form says something else.
let cart = newCart();

function newCart() {
  return Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// ask returns what is answered, as JSON. What is refused is an error in the words of who refuses it.
async function ask(url, init) {
  const answer = await fetch(url, init);
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.detail ?? `${url}: ${answer.status}`);
  return body;
}

const post = (body, headers = {}) => ({
  method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body),
});

const shop = (path, body) => ask(path, post(body));

function pawl(path, init = {}) {
  const headers = { ...init.headers, Authorization: `Bearer ${order.ticket}` };
  return ask(`/v1/workflows/order/keys/${encodeURIComponent(order.number)}${path}`, { ...init, headers });
}

function say(problem) {
  $('problem').textContent = problem;
  $('problem').hidden = !problem;
  if (problem) $('problem').scrollIntoView({ block: 'nearest' });
}

// submitted has done what a form asks for, and says why it cannot be.
function submitted(form, act) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    say('');
    try {
      await act(Object.fromEntries(new FormData(form)));
    } catch (error) {
      say(error.message);
    }
  });
}

$('order').addEventListener('input', () => { cart = newCart(); });
submitted($('order'), async ({ item, quantity }) => follow(await shop('orders', { cart, item, quantity: Number(quantity) })));

// The key of a command says which version was on the screen: two clicks on it are one command.
for (const transition of ['pay', 'cancel']) {
  submitted($(transition), (payload) => pawl(`/${transition}`, post(payload, { 'Idempotency-Key': `page-${transition}-${version}` })));
}

// follow shows an order from now on. The second answer to two clicks is the same order.
function follow(placed) {
  if (order) return;
  order = placed;
  renewInTime();
  history.replaceState(null, '', `#${order.cart}`); // so that the page can be loaded again
  $('number').textContent = `Order ${order.cart}`;
  $('order').hidden = true;
  $('followed').hidden = false;
  $('number').focus(); // the button that had it is gone
  connect();
}

// connect follows the order from the cursor on. When that ends it begins again, with a fresh ticket.
async function connect() {
  $('live').textContent = failures ? 'connecting again' : 'connecting';
  try {
    if (failures) await renew();
    if (!version) {
      for (const e of (await pawl('/history')).entries) {
        show({ ...e, state: e.to, time: e.at });
        after = e.position;
      }
    }
  } catch (error) {
    say(error.message);
    again();
    return;
  }
  socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/v1/stream`, ['pawl.v1', `pawl.ticket.${order.ticket}`]);
  socket.onopen = () => send({ op: 'subscribe', id: 'order', after, filter: { workflow: 'order', business_key: order.number } });
  socket.onmessage = ({ data }) => heard(JSON.parse(data));
  socket.onclose = ({ code }) => {
    if (code === 4410) after = 'start'; // the log does not reach back to the cursor any more
    again();
  };
}

const send = (message) => socket.send(JSON.stringify(message));

function again() {
  failures++;
  $('live').textContent = 'connecting again';
  setTimeout(connect, Math.random() * Math.min(10_000, 250 * 2 ** failures));
}

function heard(message) {
  switch (message.op) {
    case 'event':
      show(message.event);
      if (!message.more) after = message.position;
      break;
    case 'caught_up':
      failures = 0;
      say('');
      $('live').textContent = 'live';
      break;
    case 'error':
      say(message.detail);
      return;
    default:
      return;
  }
  offer();
}

// show adds a transition, once.
function show({ version: made, transition, state, time, reason, data }) {
  if (made <= version) return;
  version = made;
  $('state').textContent = state.replaceAll('_', ' ');
  $('total').textContent = `${(data.total / 100).toFixed(2)} ${data.currency}`;
  $('why').textContent = data.problem ?? '';
  $('why').hidden = !data.problem;
  $('history').append(entry(transition, state, new Date(time), reason));
}

function entry(transition, state, time, reason) {
  const when = document.createElement('time');
  when.dateTime = time.toISOString();
  when.textContent = time.toLocaleTimeString();
  const what = document.createElement('strong');
  what.textContent = `${transition}: ${state.replaceAll('_', ' ')}`;
  const item = document.createElement('li');
  item.append(when, what);
  if (reason) {
    const why = document.createElement('q');
    why.textContent = reason;
    item.append(why);
  }
  return item;
}

// offer lets be done what can be done now. The workflow knows; the page does not repeat it. Nothing moves by that: the second
// of two clicks must not meet another button.
async function offer() {
  clearTimeout(offering);
  const asked = version;
  const { transitions } = await pawl('/transitions').catch(() => ({}));
  if (asked !== version) return;
  if (!transitions) { // refused or lost: no other event may come that asks again
    clearTimeout(offering);
    offering = setTimeout(offer, 1000);
    return;
  }
  for (const name of ['pay', 'cancel']) {
    $(name).firstElementChild.disabled = !transitions.some((t) => t.transition === name && t.allowed);
  }
}

// renew gets a fresh ticket of the backend, which knows whose session this is.
async function renew() {
  order = await shop('tickets', { cart: order.cart });
  renewInTime();
}

// renewInTime presents a fresh ticket on the open connection when half of the time of this one is over. Where there is
// none to be had, the connection ends with the ticket, and connect begins again.
function renewInTime() {
  clearTimeout(renewal);
  renewal = setTimeout(() => renew().then(present, () => {}), order.seconds * 1000 / 2);
}

function present() {
  if (socket?.readyState === WebSocket.OPEN) send({ op: 'authenticate', id: 'fresh', credential: order.ticket });
}

// A page that is loaded again follows the order that its address names.
if (/^#[0-9a-f]{12}$/.test(location.hash)) shop('tickets', { cart: location.hash.slice(1) }).then(follow, (error) => say(error.message));
