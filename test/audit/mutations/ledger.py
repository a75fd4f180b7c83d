"""An honest log in SQLite, in which lines are changed, and the rules of checks.sql that find each change.

The forms, the loader and the rules are those of verify.py. The log is loaded once. A change replaces only its own rows,
makes only the tables again that read them, and runs only the rules that read these tables; then it is undone.
"""
import importlib.util
import re
import sqlite3
from pathlib import Path

from changes import decimal, in_units

EXPORT = Path(__file__).parents[3] / 'templates/export'
SPEC = importlib.util.spec_from_file_location('verify', EXPORT / 'verify.py')
verify = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(verify)

# Numbers of the log that facts name. They are doubled with the numbers of the lines, so that a line fits between two.
LOG_NUMBERS = {'share_allocations': ['entry_id'], 'reversal_evidence': ['entry_id'], 'quote_acceptances': ['entry_id'],
               'requote_acceptances': ['entry_id'], 'book_closes': ['facts_to']}
# What a verifier compares without a rule.
FORM, ROOTS, KEYS, CONTINUATION = ('the verifier: %s' % each for each in ('form', 'roots', 'keys', 'continuation'))


class Line:
    """A line of the log: its kind, its number and its fields as they are written."""
    def __init__(self, kind, number, fields):
        self.kind, self.number, self.fields = kind, number, tuple(fields)

    def with_fields(self, changes):
        fields = list(self.fields)
        for place, text in changes.items():
            fields[place] = text
        return Line(self.kind, self.number, fields)

    def leaf(self):
        return verify.sha256(b'\0' + '\t'.join([self.kind, str(self.number // 2), *self.fields]).encode())


def read_lines(path, forms):
    lines = []
    for text in path.read_text(encoding='utf-8').split('\n')[:-1]:
        kind, number, *fields = text.split('\t')
        line = Line(kind, 2 * int(number), fields)
        places = [forms[kind].names.index(name) for name in LOG_NUMBERS.get(kind, [])]
        lines.append(line.with_fields({place: str(2 * int(fields[place])) for place in places}))
    return lines


class Rules:
    """The rules and the statements before them, each with the tables that it reads."""
    def __init__(self, path=EXPORT / 'checks.sql'):
        checks = verify.Checks(path.read_text(encoding='utf-8'))
        self.forms, self.statements, reads = checks.forms, [], {}
        known = {*checks.forms, 'map_values', 'currencies', 'pack'}
        for sql in checks.prepare:
            made = re.search(r'(?:CREATE TABLE|INSERT INTO) (\w+)|CREATE INDEX \w+ ON (\w+)', sql)
            table = made[1] or made[2]
            known.add(table)
            read = tables_of(sql, known) - {table}
            reads[table] = reads.get(table, set()) | read.union(*(reads.get(each, set()) for each in read))
            self.statements.append((table, sql))
        self.reads = reads
        self.rules = []
        for name, _, _, _, query in checks.rules:
            read = tables_of(query, known)
            self.rules.append((name, read.union(*(reads.get(each, set()) for each in read)), query))

    def names(self):
        return [name for name, _, _ in self.rules]

    def affected(self, changed):
        """The statements to repeat and the rules to run after a change of these tables."""
        made = {table for table, read in self.reads.items() if read & changed}
        return [each for each in self.statements if each[0] in made], [
            (name, query) for name, read, query in self.rules if read & changed]


def tables_of(sql, known):
    return set(re.findall(r'\w+', re.sub(r"--.*|'[^']*'", '', sql))) & known


def receipt(key, sums):
    """The fields of a receipt of so many rows with these sums, or none without rows."""
    if sums is None:
        return ()
    digits = verify.CURRENCIES.get(key[3], 2)
    return (*key, str(sums[0]), *(decimal(units, digits) for units in sums[1:]))


class Ledger:
    """A log in memory, with what the rules find in it."""
    def __init__(self, path, rules):
        self.name, self.rules, self.forms = path.stem, rules, rules.forms
        self.lines = read_lines(path, rules.forms)
        self.of_kind = {}
        for line in self.lines:
            self.of_kind.setdefault(line.kind, []).append(line)
        self.size = len(self.lines)
        self.plans = {}
        self.origin = [line.fields[0] for line in self.of_kind.get('log_continues', [])][-1:]
        self.db = None

    def load(self):
        """Fills the tables when the first change is made, and expects that no rule finds anything."""
        self.db = sqlite3.connect(':memory:', isolation_level=None)
        self.fill()
        found = self.found_now([(name, query) for name, _, query in self.rules.rules])
        if found or self.other_roots(set(), []):
            raise ValueError('%s is not honest: %s' % (self.name, ', '.join(sorted(found)) or ROOTS))

    def fill(self):
        for form in self.forms.values():
            self.db.execute(form.create)
            self.db.execute('CREATE INDEX "%s_log_no" ON "%s" (log_no)' % (form.kind, form.kind))
        self.db.execute('CREATE TABLE map_values (log_no INTEGER, column_name TEXT, path TEXT, value TEXT)')
        self.db.execute('CREATE TABLE currencies (code TEXT, digits INTEGER)')
        self.db.execute('CREATE TABLE pack (first INTEGER, size INTEGER, from_month TEXT, to_month TEXT)')
        self.db.execute('CREATE INDEX map_values_log_no ON map_values (log_no)')
        self.db.executemany('INSERT INTO currencies VALUES (?,?)', verify.CURRENCIES.items())
        months = [line.fields[0] for line in self.of_kind.get('closed_months', [])]
        self.db.execute('INSERT INTO pack VALUES (0,?,?,?)', (
            self.size, min(months, default='0001-01'), max(months, default='9999-12')))
        for line in self.lines:
            self.insert(line)
        for _, sql in self.rules.statements:
            self.db.execute(sql)

    def insert(self, line):
        """Reads a line as the verifier does, which refuses a line that is not in its form."""
        form, fields = self.forms[line.kind], list(line.fields)
        fields = [verify.unescape(field) if '\\' in field else field for field in fields]
        if any(fields[place] is None for place in form.required):
            raise verify.Wrong('NULL')
        form.rows, form.pairs = [], []
        form.read(line.number, fields)
        form.flush(self.db)

    def found_by(self, removed, added):
        """The rules that find something after these lines were removed and added, and what the verifier finds itself."""
        if self.db is None:
            self.load()
        changed, found = self.changed_tables(removed, added), set()
        statements, rules = self.plans.setdefault(frozenset(changed), self.rules.affected(changed))
        self.db.execute('BEGIN')
        try:
            for line in removed:
                self.db.execute('DELETE FROM "%s" WHERE log_no = ?' % line.kind, (line.number,))
                self.db.execute('DELETE FROM map_values WHERE log_no = ?', (line.number,))
            for line in added:
                self.insert(line)
            for table in {table for table, _ in statements}:
                self.db.execute('DROP TABLE "%s"' % table)
            for _, sql in statements:
                self.db.execute(sql)
            found |= self.found_now(rules)
        except verify.Wrong:
            return {FORM}
        finally:
            self.db.execute('ROLLBACK')
        gone = {line.number for line in removed}
        kinds = {line.kind for line in [*removed, *added]}
        if kinds & {'ledger_rows', 'month_partners', 'closed_months'} and self.other_roots(gone, added):
            found.add(ROOTS)
        if 'log_keys' in kinds and self.wrong_keys(self.without('log_keys', gone, added)):
            found.add(KEYS)
        if self.of_kind.get('log_continues') and self.wrong_continuation(gone, added):
            found.add(CONTINUATION)
        return found

    def changed_tables(self, removed, added):
        tables = {line.kind for line in [*removed, *added]}
        maps = lambda lines: sorted((line.number, name, text) for line in lines
                                    for name, kind, text in zip(self.forms[line.kind].names,
                                                                self.forms[line.kind].types, line.fields)
                                    if kind == 'map')
        return tables | ({'map_values'} if maps(removed) != maps(added) else set())

    def found_now(self, rules):
        found = set()
        for name, query in rules:
            try:
                if self.db.execute('SELECT 1 FROM (%s) LIMIT 1' % query).fetchone():
                    found.add(name)
            except sqlite3.Error:
                found.add(name)
        return found

    def without(self, kind, gone, added):
        """The lines of a kind after a change, in order."""
        kept = [line for line in self.of_kind.get(kind, []) if line.number not in gone]
        return sorted([*kept, *(line for line in added if line.kind == kind)], key=lambda line: line.number)

    def trees_after(self, gone, added):
        """The trees of the rows of each partner after a change, and the fact that has the root of each."""
        form = self.forms['ledger_rows']
        months = [line.fields[0] for line in self.without('closed_months', gone, added)]
        begin, trees = months[0] if months else '', {}
        for line in self.without('ledger_rows', gone, added):
            key = max(line.fields[form.month], begin), *(line.fields[place] for place in form.key)
            trees.setdefault(key, verify.Tree()).add(line.leaf())
        for line in self.without('month_partners', gone, added):
            *key, root = (line.fields[self.forms['month_partners'].names.index(name)]
                          for name in ('month', 'partner_id', 'currency', 'arrangement', 'root'))
            if key[0] >= begin:
                tree = trees.pop(tuple(key), None)
                yield line, root, verify.to_base64(tree.root()) if tree else ''

    def other_roots(self, gone, added):
        return any(stated != actual for _, stated, actual in self.trees_after(gone, added))

    def roots_after(self, gone, added):
        """The facts whose root a change makes wrong, each with its new root."""
        return [(line, actual) for line, stated, actual in self.trees_after(gone, added) if actual not in ('', stated)]

    def receipts_after(self, gone, added):
        """The receipts that a change of rows makes wrong, and those that fit the rows then."""
        rows, receipts, events = (self.forms[kind] for kind in ('ledger_rows', 'ledger_receipts', 'audit_events'))
        name_of, action_of = events.names.index('event_id'), events.names.index('action')
        actions = {line.fields[name_of]: line.fields[action_of] for line in self.without('audit_events', gone, added)}
        key_of = [rows.names.index(name) for name in receipts.names[:4]]
        sums_of = [rows.names.index(name) for name in receipts.names[5:]]
        counted, last = {}, max(line.number for line in [*self.lines, *added])
        for line in self.without('ledger_rows', gone, added):
            key = tuple(line.fields[place] for place in key_of)
            if actions.get(key[0]) not in ('quote.accept', 'requote.accept'):
                before = counted.get(key, [0] * (1 + len(sums_of)))
                digits = verify.CURRENCIES.get(key[3], 2)
                units = (in_units(line.fields[place], digits) for place in sums_of)
                counted[key] = [sum(each) for each in zip(before, [1, *units])]
        removed, written = [], []
        for line in self.without('ledger_receipts', gone, added):
            fields = receipt(line.fields[:4], counted.pop(line.fields[:4], None))
            if fields != line.fields:
                removed.append(line)
                written += [Line(line.kind, line.number, fields)] if fields else []
        written += [Line('ledger_receipts', last + 1 + place, receipt(key, sums))
                    for place, (key, sums) in enumerate(counted.items())]
        return removed, written

    def wrong_keys(self, lines):
        """Whether a key that names a former key was not signed by it."""
        for line in lines:
            name, public, previous, signature, *_ = line.fields
            if signature == '\\N':
                continue
            try:
                key = verify.Key(name, b'\1' + verify.from_base64(public))
                is_signed = verify.is_signed(verify.from_base64(previous), (key.text + '\n').encode(),
                                             verify.from_base64(signature))
            except verify.Wrong:
                return True
            if not is_signed:
                return True
        return False

    def wrong_continuation(self, gone, added):
        """Whether a continuation is not at the leaf that it names, or belongs to another log."""
        lines = [line for line in self.lines if line.number not in gone]
        lines = sorted([*lines, *added], key=lambda line: line.number)
        origin = self.origin[0] if self.origin else ''
        for index in range(len(lines) - 1, -1, -1):
            line = lines[index]
            if line.kind == 'log_continues':
                if (line.fields[0], line.fields[4]) != (origin, str(index)):
                    return True
                origin = line.fields[1]
        return False

