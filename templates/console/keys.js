// Keyboard shortcuts: g and a letter open a page, / searches, j and k move through the rows, Enter opens a row, ? lists all.
(() => {
  let waiting = '';
  let timer;
  /** True for a text field. */
  const typing = (target) =>
    target.closest(
      'textarea, select, [contenteditable], input:not([type="checkbox"], [type="radio"], [type="file"])',
    ) !== null;
  const rows = () => [...document.querySelectorAll('main tbody tr')].filter((row) => row.querySelector('a.row'));
  const seen = (element) => element.getClientRects().length > 0;

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

  /** The actions in the title come first, then those of cards and rows, and the button of a form. */
  function toAction() {
    const actions = ['.title .actions', '.suggestions form, .card .actions', 'form .buttons, .buttons'].flatMap(
      (where) => [...document.querySelectorAll(`main :is(${where}) :is(a, button)`)].filter(seen),
    );
    actions[(actions.indexOf(document.activeElement) + 1) % actions.length]?.focus();
  }

  /** Enter in a field submits the form, even if another button, such as a search, comes first. */
  function submitMain(event) {
    const main = event.target.matches('input:not([type="search"])') && event.target.form?.querySelector('button.main');
    if (!main) return;
    event.preventDefault();
    main.click();
  }

  /** True if a form has unsent input, which Escape must not discard. */
  const filled = () =>
    [...document.querySelectorAll('main :is(input, textarea)')].some((each) =>
      each.matches('[type="checkbox"], [type="radio"]')
        ? each.checked !== each.defaultChecked
        : each.value !== each.defaultValue,
    );

  const ACTIONS = {
    '?': () => document.getElementById('keys')?.showModal(),
    j: () => move(1),
    k: () => move(-1),
    x: () =>
      (document.activeElement.closest('main tr') ?? document.querySelector('tr.here'))
        ?.querySelector('input[type="checkbox"]')
        ?.click(),
    '.': toAction,
    Escape: () => filled() || [...document.querySelectorAll('.crumbs a')].at(-1)?.click(),
  };

  // Shift and a click tick all rows since the last click.
  let clicked;
  document.addEventListener('click', ({ target, shiftKey }) => {
    if (!target.matches('input.tick')) return;
    const boxes = [...document.querySelectorAll('input.tick')];
    const [from, to] = [boxes.indexOf(clicked), boxes.indexOf(target)].sort((one, other) => one - other);
    if (shiftKey && from >= 0) for (const box of boxes.slice(from, to)) box.checked = target.checked;
    clicked = target;
  });

  // The browser saves a file itself.
  const own = (event) => event.submitter?.matches('[data-download]') && event.stopImmediatePropagation();
  document.addEventListener('submit', own, true);

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typing(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      if (event.key === 'Enter' && !event.isComposing) submitMain(event);
      return;
    }
    if (document.documentElement.dataset.keys === 'off') return;
    // An open dialog handles its own keys.
    if (document.querySelector('dialog[open]') !== null) return;
    clearTimeout(timer);
    const pressed = `${waiting}${event.key}`;
    waiting = '';
    if (pressed === 'g') {
      waiting = 'g ';
      timer = setTimeout(() => {
        waiting = '';
      }, 1200);
      return;
    }
    if (Object.hasOwn(ACTIONS, pressed)) return ACTIONS[pressed]();
    const target = document.querySelector(`[data-key="${CSS.escape(pressed)}"]`);
    if (target === null) return;
    event.preventDefault();
    if (target.matches('input')) target.focus();
    else target.click();
  });

  /** Scrolls the current page of the navigation into a narrow window. */
  function showPlace() {
    for (const each of document.querySelectorAll(':is(.rail, .strip, .tabs) [aria-current]')) {
      each.scrollIntoView({ inline: 'center', block: 'nearest' });
    }
  }
  showPlace();
  // The new page was inserted in place of the old, so the focus must move to its content.
  document.addEventListener('htmx:afterSettle', (event) => {
    if (event.detail.target !== document.body) return;
    showPlace();
    if (document.activeElement === null || document.activeElement === document.body) {
      document.getElementById('main')?.focus({ preventScroll: true });
    }
  });
})();
