// Puts the code of a sign-in link, which is the fragment of its address, into the form.
(() => {
  function fill() {
    const code = location.hash.slice(1);
    if (code === '') return;
    history.replaceState(null, '', location.pathname + location.search);
    const form = document.querySelector('form[data-link]');
    form.elements.code.value = code;
    form.querySelector('button').focus();
  }

  addEventListener('hashchange', fill);
  fill();
})();
