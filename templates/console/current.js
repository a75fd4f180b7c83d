// Scrolls the current month, place or tab into view if the row is wider than the window.
(() => {
  document.addEventListener('htmx:load', ({ target }) => {
    for (const current of target.querySelectorAll('[aria-current="page"]')) {
      const box = current.closest('.strip, .tabs, .rail nav ul');
      if (box === null) continue;
      const [inner, outer] = [current, box].map((each) => each.getBoundingClientRect());
      box.scrollLeft += Math.min(0, inner.left - outer.left) || Math.max(0, inner.right - outer.right);
    }
  });
})();
