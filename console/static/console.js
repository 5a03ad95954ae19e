// Pages update themselves, copy texts, and show the value of a slider. Everything else works without this script.

const said = document.querySelector('#live');
const news = document.querySelector('#news');
const streams = new Map(); // by address without its position
let waiting = false; // there are changes that the page does not show yet
let asking = false;
let timer;
let asked = performance.now(); // time of the last response
let soonest = 0; // time of the next permitted request
let failures = 0; // consecutive
let closed = 0; // consecutive refused streams
let tag = ''; // entity tag of the page, "" if it is not shown completely

const write = (where, text) => { if (where && where.textContent !== text) where.textContent = text; };
const tell = (text) => write(said, text);

const nameOf = (address) => {
  const url = new URL(address, location.href);
  url.searchParams.delete('after');
  return url.href;
};

// follow opens the event streams that the page names and closes others. Hidden tabs have none, because without HTTP/2 all tabs of a
// browser share six connections to a server.
function follow() {
  const { live, poll } = document.body.dataset;
  const wanted = document.hidden ? [] : (live ?? '').split(' ').filter(Boolean);
  const names = wanted.map(nameOf);
  for (const [name, source] of streams) {
    if (!names.includes(name)) {
      source.close();
      streams.delete(name);
    }
  }
  wanted.forEach((address, i) => {
    if (streams.has(names[i])) return;
    const source = new EventSource(address);
    source.onopen = () => {
      closed = 0;
      tell('live');
    };
    source.onerror = () => {
      tell('connecting again');
      if (source.readyState === EventSource.CLOSED) reopen(names[i]);
    };
    source.onmessage = changed;
    source.addEventListener('status', changed);
    source.addEventListener('unauthorized', leave);
    streams.set(names[i], source);
  });
  if (streams.size === 0) tell(poll && !document.hidden ? 'live' : '');
  else if ([...streams.values()].every((s) => s.readyState === EventSource.OPEN)) tell('live');
  plan();
}

// reopen handles a stream that was refused, for example by a proxy, so that the browser does not reconnect by itself. The page is
// requested after a pause and names the remaining streams.
function reopen(name) {
  streams.delete(name);
  soonest = Math.max(soonest, performance.now() + backoff(closed++));
  changed();
}

function changed() {
  waiting = true;
  plan();
}

// plan schedules the next request of a visible page: after a change as soon as permitted, otherwise at the polling interval.
function plan() {
  clearTimeout(timer);
  const at = waiting ? soonest : Math.max(soonest, asked + Number(document.body.dataset.poll || Infinity));
  if (!asking && !document.hidden && at < Infinity) timer = setTimeout(ask, Math.max(0, at - performance.now()));
}

// ask requests the page and shows the differences.
async function ask() {
  asking = true;
  waiting = false;
  let good = false;
  let all = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html', ...(tag && { 'If-None-Match': tag }) } });
    const gone = answer.status >= 400 && answer.status < 500 && answer.status !== 429;
    if (answer.redirected || gone) return leave(); // signed out, or the page no longer exists
    if (answer.ok) {
      all = show(new DOMParser().parseFromString(await answer.text(), 'text/html'));
      tag = all ? answer.headers.get('ETag') ?? '' : '';
    }
    good = answer.ok || answer.status === 304;
  } catch {
    good = false; // the node cannot be reached
  }
  asking = false;
  asked = performance.now();
  failures = good ? 0 : failures + 1;
  waiting ||= !good || !all;
  soonest = asked + pause(good, all);
  if (good) follow();
  else plan();
  if (!good) tell('connecting again');
  else if (!all) tell('changed; shown when you have finished where you are');
}

// leave reloads a page that no longer exists, unless the user would lose a text.
function leave() {
  const fields = [...document.querySelectorAll('main textarea, main input')];
  if (fields.every((f) => f.value === f.defaultValue)) location.reload();
  else tell('you are signed out, or this page is not there any more: load it again');
}

// pause delays the next request by some milliseconds.
function pause(good, all) {
  const every = Number(document.body.dataset.every || 1000);
  if (good) return all ? every : Math.max(every, 1000);
  return backoff(failures);
}

// backoff returns a delay in milliseconds that doubles with each consecutive failure.
const backoff = (n) => Math.min(500 * 2 ** n, 30_000) * (0.75 + Math.random() / 2);

// show replaces the parts that differ and reports whether all were replaced. Parts in use are kept until the next request.
function show(page) {
  let all = true;
  const texts = [];
  const back = marked();
  for (const part of page.querySelectorAll('[data-part][id]')) {
    const old = document.getElementById(part.id);
    const was = part.outerHTML; // without the user's changes
    if (!old || (old.dataset.was ?? old.outerHTML) === was) continue;
    if (busy(old)) {
      all = false;
      continue;
    }
    if (part.dataset.says && part.dataset.says !== old.dataset.says) texts.push(part.dataset.says);
    replace(old, document.importNode(part, true), was);
  }
  back();
  if (texts.length) write(news, texts.join('. '));
  for (const name of ['live', 'every', 'poll']) {
    if (name in page.body.dataset) document.body.dataset[name] = page.body.dataset[name];
    else delete document.body.dataset[name];
  }
  return all;
}

// busy reports whether the user has selected text of a part or has the focus in one of its fields.
function busy(part) {
  const at = document.activeElement;
  if (part.contains(at) && at.matches('textarea, select, input:not([type=checkbox], [type=radio])')) return true;
  const selection = getSelection();
  return selection.type === 'Range' && selection.getRangeAt(0).intersectsNode(part);
}

// replace replaces a part and keeps its open details, its values, its scroll position and the focus.
function replace(old, fresh, was) {
  const focused = old.contains(document.activeElement) ? pathOf(document.activeElement, old) : null;
  const left = wide(old).map((e) => e.scrollLeft);
  for (const open of old.querySelectorAll('details[open][id]')) find({ id: open.id }, fresh)?.setAttribute('open', '');
  for (const field of old.querySelectorAll('input[name], select[name], textarea[name]')) {
    const same = find(pathOf(field, old), fresh);
    if (!same || field.type === 'hidden') continue;
    if (field.type === 'checkbox') same.checked = field.checked;
    else if (field.value !== field.defaultValue) same.value = field.value;
  }
  fresh.dataset.was = was;
  old.replaceWith(fresh);
  wide(fresh).forEach((e, i) => { e.scrollLeft = left[i] ?? 0; });
  if (focused) find(focused, fresh)?.focus({ preventScroll: true });
}

const wide = (part) => [part, ...part.querySelectorAll('.wide')];

// marked remembers the positions of links and lines, and returns a function that restores that of the one nearest to the top.
function marked() {
  const main = document.querySelector('main');
  if (scrollY === 0) return () => {};
  const seen = [...main.querySelectorAll('a[href], [id]')].map((e) => [pathOf(e, main), e.getBoundingClientRect()])
    .filter(([, box]) => box.height > 0).sort(([, a], [, b]) => Math.abs(a.top) - Math.abs(b.top));
  return () => {
    for (const [path, box] of seen) {
      const now = find(path, main);
      if (now) return scrollBy(0, now.getBoundingClientRect().top - box.top);
    }
  };
}

// pathOf identifies an element of a part by its name or its index.
function pathOf(element, part) {
  if (element.id) return { id: element.id };
  const href = element.getAttribute('href');
  if (href) return { href };
  if (element.name) return { name: element.name, value: element.type === 'checkbox' ? element.value : undefined };
  return { tag: element.tagName, nth: [...part.querySelectorAll(element.tagName)].indexOf(element) };
}

function find(path, part) {
  if (path.id) return part.querySelector(`#${CSS.escape(path.id)}`);
  if (path.href) return [...part.querySelectorAll('a')].find((a) => a.getAttribute('href') === path.href);
  if (path.name) return [...part.querySelectorAll('[name]')].find((e) => e.name === path.name && (path.value ?? e.value) === e.value);
  return part.querySelectorAll(path.tag)[path.nth];
}

document.addEventListener('click', async ({ target }) => {
  const button = target.closest?.('[data-copy]');
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'The browser does not let this page copy';
  }
});

for (const slider of document.querySelectorAll('[data-output]')) {
  const output = document.getElementById(slider.dataset.output);
  const show = () => { output.textContent = slider.value; };
  slider.addEventListener('input', show);
  show();
}

document.addEventListener('change', ({ target }) => {
  if (!target.dataset.all) return;
  for (const one of target.form.querySelectorAll(`[name="${CSS.escape(target.dataset.all)}"]`)) one.checked = target.checked;
});

// A form is sent once, even if its button is pressed again.
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = 'yes';
});
addEventListener('pageshow', () => { for (const form of document.forms) delete form.dataset.sent; }); // after navigating back

document.addEventListener('visibilitychange', () => {
  const { live, poll } = document.body.dataset;
  if (!document.hidden && (live || poll)) waiting = true; // show missed changes at once
  follow();
});

follow();
