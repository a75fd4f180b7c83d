// Where months, places or tabs are wider than the window, the current one is scrolled into it.
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
