// What the pages do beyond HTML: they follow what they show, copy texts, and say what a slider stands at. Everything else works
// without this script.

const said = document.querySelector('#live');
const streams = new Map(); // by their address without where they begin
let waiting = false; // something has changed that this page does not show yet
let asking = false;
let next = 0; // when the page may be asked for again

const tell = (text) => { if (said && said.textContent !== text) said.textContent = text; };

const nameOf = (address) => {
  const url = new URL(address, location.href);
  url.searchParams.delete('after');
  return url.href;
};

// follow opens the event streams that a page names, and closes those that it does not name any more. A tab that nobody looks at
// has none: without HTTP/2 a browser has six connections to a server for all of them, and pages would wait for streams to end.
function follow(page) {
  const wanted = document.hidden ? [] : (page.body.dataset.live ?? '').split(' ').filter(Boolean);
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
    source.onopen = () => tell('live');
    source.onerror = () => tell(source.readyState === EventSource.CLOSED ? stopped(names[i]) : 'connecting again');
    source.onmessage = changed;
    source.addEventListener('status', changed);
    source.addEventListener('unauthorized', () => location.reload());
    streams.set(names[i], source);
  });
  if (streams.size === 0) tell('');
}

// stopped is for a stream that has ended for good, such as that of a command that has.
function stopped(name) {
  streams.delete(name);
  return streams.size ? 'live' : 'not live';
}

function changed() {
  waiting = true;
  if (!asking) setTimeout(ask, Math.max(0, next - performance.now()));
  asking = true;
}

// ask asks for the page again, and shows what is different.
async function ask() {
  waiting = false;
  let pause = Number(document.body.dataset.every || 1000);
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' } });
    if (answer.redirected) return location.reload(); // nobody is signed in any more
    if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), 'text/html'));
    else waiting = answer.status >= 500;
  } catch {
    waiting = true; // the node cannot be reached
  }
  if (waiting) pause = Math.max(pause, 1000);
  asking = false;
  next = performance.now() + pause;
  if (waiting) changed();
}

// show puts the parts of a page that are different in the place of those that are here.
function show(page) {
  for (const part of page.querySelectorAll('[data-part][id]')) {
    const old = document.getElementById(part.id);
    const was = part.outerHTML; // before what the user has opened in it
    if (!old || (old.dataset.was ?? old.outerHTML) === was) continue;
    for (const open of old.querySelectorAll('details[open][id]')) {
      part.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute('open', '');
    }
    for (const box of old.querySelectorAll('[name][value]:checked')) {
      part.querySelector(`[name="${CSS.escape(box.name)}"][value="${CSS.escape(box.value)}"]`)?.setAttribute('checked', '');
    }
    const focused = old.contains(document.activeElement) ? pathOf(document.activeElement, old) : null;
    const left = old.scrollLeft;
    const fresh = document.importNode(part, true);
    fresh.dataset.was = was;
    old.replaceWith(fresh);
    fresh.scrollLeft = left;
    if (focused) find(focused, fresh)?.focus({ preventScroll: true });
  }
  follow(page);
}

// pathOf says where something is in a part: what it is called, or the how-manieth of its kind.
function pathOf(element, part) {
  if (element.id) return { id: element.id };
  const href = element.getAttribute('href');
  if (href) return { href };
  return { tag: element.tagName, nth: [...part.querySelectorAll(element.tagName)].indexOf(element) };
}

function find(path, part) {
  if (path.id) return part.querySelector(`#${CSS.escape(path.id)}`);
  if (path.href) return [...part.querySelectorAll('a')].find((a) => a.getAttribute('href') === path.href);
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
  const write = () => { output.textContent = slider.value; };
  slider.addEventListener('input', write);
  write();
}

document.addEventListener('change', ({ target }) => {
  if (!target.dataset.all) return;
  for (const one of target.form.querySelectorAll(`[name="${CSS.escape(target.dataset.all)}"]`)) one.checked = target.checked;
});

// A form that changes something is sent once, however often its button is pressed.
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = 'yes';
});
addEventListener('pageshow', () => { for (const form of document.forms) delete form.dataset.sent; }); // for who comes back to it

document.addEventListener('visibilitychange', () => {
  if (document.hidden) follow(document);
  else if (document.body.dataset.live) changed();
});

follow(document);
