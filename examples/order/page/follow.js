// follow calls onEvent(event) for each event of the log after a position, until stop() is called. It returns stop.
//   address   such as '/v1/events?workflow=order&business_key=A-17'
//   after     the position of the state that the page shows
//   onEvent   gets a CloudEvent; it may get one twice, with the same id
//   renew     async; gets a fresh ticket, as the cookie pawl_ticket
//   reset     async; reads the state again, and returns its position
//   onState   gets 'live', 'waiting', or 'stopped' with a problem document
export function follow({ address, after, onEvent, renew, reset, onState = () => {} }) {
  let source, timer, failures = 0, stopped = false;

  const url = () => {
    const at = new URL(address, location.href);
    at.searchParams.set('after', after);
    return at;
  };

  const stop = () => {
    stopped = true;
    clearTimeout(timer);
    source?.close();
  };

  const open = () => {
    if (stopped) return;
    source = new EventSource(url());
    source.onopen = () => onState('live');
    source.onmessage = ({ data, lastEventId }) => {
      failures = 0;
      onEvent(JSON.parse(data));
      if (lastEventId) after = lastEventId; // the last event of a transition has one
    };
    source.addEventListener('unauthorized', () => {
      source.close(); // which would get 401 now
      closed();
    });
    source.onerror = () => {
      if (stopped) return;
      onState('waiting');
      if (source.readyState === EventSource.CLOSED) closed();
    };
  };

  const again = (answer) => {
    const asked = Number(answer?.headers.get('Retry-After')) || 0;
    const pause = Math.min(30, 0.5 * 2 ** failures++);
    timer = setTimeout(open, 1000 * (asked + pause * Math.random()));
  };

  // closed asks for the reason: EventSource does not tell it.
  const closed = async () => {
    let answer;
    try {
      answer = await fetch(url(), { headers: { Accept: 'text/event-stream' } });
      if (answer.ok) await answer.body?.cancel();
      if (answer.status === 401) await renew();
      if (answer.status === 410 || answer.status === 400) after = await reset();
    } catch {
      return again(); // the network, or one of the two functions failed
    }
    switch (answer.status) {
      case 204:
      case 403:
      case 404:
        stop();
        return onState('stopped', answer.status === 204 ? undefined : await answer.json().catch(() => undefined));
      default:
        return again(answer);
    }
  };

  open();
  return stop;
}
