// Says how much of a form's files has arrived, and then that the server reads them.
(() => {
  document.addEventListener('htmx:beforeRequest', ({ target: form }) => delete form.dataset.sent);
  document.addEventListener('htmx:xhr:progress', ({ target: form, detail: { loaded, total } }) => {
    // The answer has progress, too.
    if (form.enctype !== 'multipart/form-data' || form.dataset.sent) return;
    let status = form.querySelector('[role="status"]');
    if (!status) {
      status = document.createElement('span');
      status.setAttribute('role', 'status');
      status.className = 'help';
      [...form.querySelectorAll('button')].at(-1).after(status);
    }
    if (loaded === total) form.dataset.sent = 'yes';
    status.textContent = loaded < total ? `Sending: ${Math.floor((100 * loaded) / total)}%` : 'Sent. Reading the file.';
  });
})();
