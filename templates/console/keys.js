// The keyboard: g and a letter goes to a place, / searches, j and k move through the rows, Enter opens, ? shows all.
(() => {
  let waiting = '';
  let timer;
  const typing = (target) => target.closest('input, textarea, select, [contenteditable]') !== null;
  const rows = () => [...document.querySelectorAll('main tbody tr')].filter((row) => row.querySelector('a.row'));

  function move(step) {
    const all = rows();
    if (all.length === 0) return;
    const at = all.findIndex((row) => row.classList.contains('here'));
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    all[at]?.classList.remove('here');
    next.classList.add('here');
    next.querySelector('a.row').focus({ preventScroll: true });
    next.scrollIntoView({ block: 'nearest' });
  }

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    clearTimeout(timer);
    const pressed = `${waiting}${event.key}`;
    waiting = '';
    if (event.key === 'g' && pressed === 'g') {
      waiting = 'g ';
      timer = setTimeout(() => {
        waiting = '';
      }, 1200);
      return;
    }
    const keys = document.getElementById('keys');
    if (keys?.open) return;
    if (pressed === '?') return keys?.showModal();
    if (pressed === 'j' || pressed === 'k') return move(pressed === 'j' ? 1 : -1);
    const target = document.querySelector(`[data-key="${CSS.escape(pressed)}"]`);
    if (target === null) return;
    event.preventDefault();
    if (target.matches('input')) target.focus();
    else target.click();
  });
})();
