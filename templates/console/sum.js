// Compares the selected open items with the payment and its fee. Amounts are whole minor units, never floats.
(() => {
  /** `12.50` becomes 1250n. Null if the text is not an amount with at most that many decimals. */
  function minorOf(text, digits) {
    const [, whole, rest = ''] = /^(\d+)(?:\.(\d+))?$/.exec(text.trim()) ?? [];
    return whole === undefined || rest.length > digits ? null : BigInt(whole + rest.padEnd(digits, '0'));
  }

  function written(minor, digits) {
    const text = String(minor < 0n ? -minor : minor).padStart(digits + 1, '0');
    const whole = text.slice(0, text.length - digits).replaceAll(/\B(?=(\d{3})+$)/g, ',');
    return (minor < 0n ? '\u2212' : '') + whole + (digits === 0 ? '' : `.${text.slice(-digits)}`);
  }

  function show(form) {
    const sum = form?.querySelector('[data-sum]');
    if (!sum) return;
    const digits = Number(sum.dataset.digits);
    const typed = (name) => form.elements.namedItem(name)?.value ?? '';
    const amount = (name, otherwise) => (typed(name).trim() === '' ? otherwise : minorOf(typed(name), digits));
    const chosen = [...form.querySelectorAll('[data-minor]:checked')].map((each) => BigInt(each.dataset.minor));
    const total = chosen.reduce((one, other) => one + other, 0n);
    const paid = amount('amount', BigInt(sum.dataset.sum));
    const fee = amount('fee', 0n);
    sum.hidden = chosen.length === 0;
    const left = paid === null || fee === null ? null : total - paid - fee;
    const most = (one) => (one === null ? null : one > 0n ? one : 0n);
    const figures = { chosen: total, paid, fee, open: most(left), unapplied: most(left === null ? null : -left) };
    for (const each of sum.querySelectorAll('[data-of]')) {
      const figure = figures[each.dataset.of];
      each.textContent = figure === null ? '?' : written(figure, digits);
      const optional = each.dataset.of !== 'chosen' && each.dataset.of !== 'paid' && each.dataset.of !== 'open';
      each.closest('div').hidden = optional && figure === 0n;
    }
  }

  document.addEventListener('input', (event) => show(event.target.closest('form')));
  // The browser restores the selection when a user goes back to the page.
  addEventListener('pageshow', () => document.querySelectorAll('form').forEach(show));
})();
