"""Changes everything in honest logs, and writes which rule of checks.sql finds it: docs/rules.md.

python3 sweep.py [--kinds KIND,KIND] [--json FILE] writes the sections of these kinds, or of all kinds and the lists after
them. FILE gets one line of JSON for each change: [log, kind, column, what, [finders]].
"""
import argparse
import json
import multiprocessing
import os
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

RULES = Rules()
changes.DIGITS.update(verify.CURRENCIES)
LEDGERS = [Ledger(path, RULES) for path in LOGS]


def richest(kind):
    """The ledgers in which a kind is changed: those with the most lines of it, then the longest."""
    holding = [ledger for ledger in LEDGERS if kind in ledger.of_kind]
    return sorted(holding, key=lambda ledger: (-len(ledger.of_kind[kind]), -ledger.size))[:IN_LOGS]


def changes_of(kind, log):
    """The changes of a kind; those of acts in one log."""
    if kind == page.ACTS:
        yield from ((LEDGERS[log], change) for change in changes.act_changes(LEDGERS[log]))
    elif kind == page.DETAILS:
        yield from changes.detail_changes(sorted(LEDGERS, key=lambda ledger: -ledger.size))
    elif kind == page.TOGETHER:
        yield from forgeries.all_forgeries({ledger.name: ledger for ledger in LEDGERS})
    else:
        for ledger in richest(kind):
            made = [change for place in range(len(RULES.forms[kind].names))
                    for change in changes.column_changes(ledger, kind, place, REACH)]
            made += changes.line_changes(ledger, kind, REACH)
            if kind == 'ledger_rows':  # Nobody who can seal the log again leaves the roots and receipts as they were.
                made = [changes.with_sums(ledger, change) for change in made]
            yield from ((ledger, change) for change in made)


def found(task):
    return [(ledger.name, change.kind, change.column, change.what, sorted(ledger.found_by(change.removed, change.added)))
            for ledger, change in changes_of(*task)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kinds')
    parser.add_argument('--json')
    options = parser.parse_args()
    every = [*RULES.forms, *page.MORE]
    kinds = options.kinds.split(',') if options.kinds else every
    tasks = [(kind, log) for kind in kinds for log in (range(len(LEDGERS)) if kind == page.ACTS else [0])]
    results, lines = page.Results(RULES.forms, RULES.names()), []
    with multiprocessing.get_context('fork').Pool(os.cpu_count()) as pool:
        for answer in pool.imap(found, tasks):
            for log, *change in answer:
                results.add(*change)
                lines.append(json.dumps([log, *change], ensure_ascii=False))
    if options.json:
        Path(options.json).write_text('\n'.join(lines) + '\n', encoding='utf-8')
    sys.stdout.reconfigure(encoding='utf-8')
    print(results.page(kinds == every), end='')


if __name__ == '__main__':
    main()
