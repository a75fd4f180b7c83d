// The marked buttons and forms ask the browser for a passkey. They stay hidden if the browser does not support passkeys.
(() => {
  const { PublicKeyCredential: Passkeys } = window;
  const supported = typeof Passkeys?.parseCreationOptionsFromJSON === 'function';

  function show() {
    if (supported) for (const each of document.querySelectorAll('[data-passkey]')) each.hidden = false;
  }

  async function send(path, body, token) {
    const headers = { 'Content-Type': 'application/json', ...(token && { 'X-Form-Token': token }) };
    const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
    const value = await answer.json();
    // The server asks for a new sign-in first.
    if (!answer.ok && value.to) location.assign(value.to);
    if (!answer.ok) throw new Error(value.message);
    return value;
  }

  async function signIn(button) {
    const options = await send('/console/sign-in/passkey/options', {});
    const publicKey = Passkeys.parseRequestOptionsFromJSON(options);
    const credential = await navigator.credentials.get({ publicKey });
    return send('/console/sign-in/passkey', { to: button.dataset.to, credential: credential.toJSON() });
  }

  async function register(form) {
    const { form_token: token, name } = Object.fromEntries(new FormData(form));
    const options = await send('/console/account/passkeys/options', {}, token);
    const publicKey = Passkeys.parseCreationOptionsFromJSON(options);
    const credential = await navigator.credentials.create({ publicKey });
    return send('/console/account/passkeys', { name, credential: credential.toJSON() }, token);
  }

  async function run(element, ceremony) {
    const says = document.querySelector('[data-passkey-says]');
    says.textContent = '';
    try {
      const { to } = await ceremony(element);
      location.assign(to);
    } catch (error) {
      // The user closed the browser's dialog.
      says.textContent = error.name === 'NotAllowedError' ? 'Not done: the passkey was not given.' : error.message;
    }
  }

  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-passkey]');
    if (button) run(button, signIn);
  });
  document.addEventListener('submit', (event) => {
    if (!event.target.matches('form[data-passkey]')) return;
    event.preventDefault();
    run(event.target, register);
  });
  document.addEventListener('htmx:load', show);
  show();
})();
