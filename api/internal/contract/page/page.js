// Fetches the document with the credential that is typed in, where one is needed, and shows it.
const form = document.getElementById('credential');
const shown = document.getElementById('document');

async function show(token) {
  const headers = token ? { Authorization: 'Bearer ' + token } : {};
  const answer = await fetch('openapi.json', { headers, credentials: 'omit' });
  const body = await answer.json();
  if (!answer.ok) {
    document.getElementById('problem').textContent = token ? body.detail : '';
    form.hidden = false;
    return;
  }
  form.hidden = true;
  shown.hidden = false;
  await customElements.whenDefined('rapi-doc');
  await shown.loadSpec(body);
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  show(form.elements.token.value.trim());
});
show('');
