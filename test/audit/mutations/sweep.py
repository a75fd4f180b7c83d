"""Changes everything in honest logs, and writes which rule of checks.sql finds it: docs/rules.md.

python3 sweep.py [--kinds KIND,KIND] [--json] writes the sections of these kinds, or of all kinds and the lists after them.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import changes  # noqa: E402
import forgeries  # noqa: E402
import page  # noqa: E402
from ledger import Ledger, Rules, verify  # noqa: E402

LOGS = sorted((Path(__file__).parent / 'logs').glob('*.tsv'))
# So many lines are changed in each column, in so many logs.
REACH, IN_LOGS = 2, 2

changes.DIGITS.update(verify.CURRENCIES)


def richest(ledgers, kind):
    """The ledgers in which a kind is changed: those with the most lines of it."""
    holding = [ledger for ledger in ledgers if kind in ledger.of_kind]
    return sorted(holding, key=lambda ledger: -len(ledger.of_kind[kind]))[:IN_LOGS]


def all_changes(ledgers, forms, kinds):
    for kind in kinds:
        if kind == page.ACTS:
            for ledger in ledgers:
                yield from ((ledger, change) for change in changes.act_changes(ledger))
        elif kind == page.TOGETHER:
            yield from forgeries.all_forgeries({ledger.name: ledger for ledger in ledgers})
        else:
            yield from changes_of_kind(ledgers, forms, kind)


def changes_of_kind(ledgers, forms, kind):
    for ledger in richest(ledgers, kind):
        made = [change for place in range(len(forms[kind].names))
                for change in changes.column_changes(ledger, kind, place, REACH)]
        made += changes.line_changes(ledger, kind, REACH)
        if kind == 'ledger_rows':  # Nobody who can seal the log again leaves the roots as they were.
            made = [changes.with_roots(ledger, change) for change in made]
        yield from ((ledger, change) for change in made)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kinds')
    parser.add_argument('--json', action='store_true')
    options = parser.parse_args()
    rules = Rules()
    every = [*rules.forms, page.ACTS, page.TOGETHER]
    kinds = options.kinds.split(',') if options.kinds else every
    ledgers = [Ledger(path, rules) for path in LOGS]
    results = page.Results(rules.forms, rules.names())
    for ledger, change in all_changes(ledgers, rules.forms, kinds):
        finders = ledger.found_by(change.removed, change.added)
        results.add(change, finders)
        if options.json:
            print(json.dumps([ledger.name, change.kind, change.column, change.what, sorted(finders)], ensure_ascii=False))
    if not options.json:
        print(results.page(kinds == every), end='')


if __name__ == '__main__':
    main()
