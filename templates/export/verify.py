#!/usr/bin/env python3
"""Verifies packs of a Reckoner log (docs/log-format.md). Several packs are given in order, each beginning where the one
before ends. The rules are those of checks.sql beside this program, never those in a pack. Exit status: 0 all checks
hold, 1 something is wrong, 2 nothing is wrong, but something could not be decided (--allow makes this 0)."""
import argparse, base64, collections, hashlib, itertools, json, os, re, sqlite3, stat, sys
from datetime import date

class Wrong(Exception):
    """What is wrong at `place`: the file and line that are being read."""
    place = ''
def at(path, line=0):
    Wrong.place = '%s line %d' % (path, line) if line else path
    return path
def read_text(path):
    with open(at(path), 'rb') as file: content = file.read()
    try: return content.decode()
    except UnicodeDecodeError: raise Wrong('not UTF-8') from None

# ---- Trees (RFC 9162, 2.1) -------------------------------------------------------------------------------------------
sha256 = lambda content: hashlib.sha256(content).digest()
node = lambda left, right: sha256(b'\x01' + left + right)

class Tree:
    """A growing tree. `edge` has the roots of its full subtrees from left to right."""
    def __init__(self, size=0, edge=()): self.size, self.edge = size, list(edge)
    def add(self, leaf):
        before = self.size
        while before & 1: leaf, before = node(self.edge.pop(), leaf), before >> 1
        self.edge.append(leaf)
        self.size += 1
    def root(self):
        root = self.edge[-1] if self.edge else sha256(b'')
        for left in self.edge[-2::-1]: root = node(left, root)
        return root

def is_consistent(old, old_root, new, new_root, path):
    """Whether `path` proves that the tree of `old` leaves is the beginning of the tree of `new` (2.1.4.2). Without
    `old_root` the proof is compared with `new_root` only and, if `old` is a power of two, with nothing."""
    if old & (old - 1) == 0:
        if old_root is None: return True
        path = [old_root] + path
    if not 0 < old < new or not path: return False
    fn, sn, fr, sr = old - 1, new - 1, path[0], path[0]
    while fn & 1: fn, sn = fn >> 1, sn >> 1
    for step in path[1:]:
        if sn == 0: return False
        if fn & 1 or fn == sn:
            fr, sr = node(step, fr), node(step, sr)
            while fn and not fn & 1: fn, sn = fn >> 1, sn >> 1
        else: sr = node(sr, step)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and sr == new_root and old_root in (None, fr)

# ---- Ed25519 (RFC 8032, 5.1.7) ---------------------------------------------------------------------------------------
P, ORDER = 2 ** 255 - 19, 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
def point(encoded):
    y, sign = int.from_bytes(encoded, 'little') & (1 << 255) - 1, encoded[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P: x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and sign): raise ValueError
    if x & 1 != sign: x = P - x
    return x, y, 1, x * y % P
def plus(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P
def times(factor, p):
    result = (0, 1, 1, 0)
    while factor: result, p, factor = plus(result, p) if factor & 1 else result, plus(p, p), factor >> 1
    return result
def is_signed(public, message, signature):
    if (len(public), len(signature)) != (32, 64): return False
    try: a, r, s = point(public), point(signature[:32]), int.from_bytes(signature[32:], 'little')
    except ValueError: return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), 'little') % ORDER
    p, q = times(s, point((4 * pow(5, -1, P) % P).to_bytes(32, 'little'))), plus(r, times(k, a))
    return s < ORDER and all((p[i] * q[2] - q[i] * p[2]) % P == 0 for i in (0, 1))

# ---- Checkpoints: signed notes and cosignatures (C2SP) ---------------------------------------------------------------
NAME = '[!-*,-~]{1,200}'
KEY = re.compile('(%s)\\+([0-9a-f]{8})\\+([A-Za-z0-9+/=]+)' % NAME).fullmatch
NOTE = re.compile('((%s)\n([1-9][0-9]{0,14})\n([A-Za-z0-9+/=]+)\n)\n((?:— %s [A-Za-z0-9+/=]+\n)*)' % (NAME, NAME))
to_base64 = lambda content: base64.b64encode(content).decode()
def from_base64(text, size=None):
    try: content = base64.b64decode(text, validate=True)
    except ValueError: content = b''
    if to_base64(content) != text or size not in (None, len(content)): raise Wrong('malformed Base64')
    return content

class Key:
    """A verifier key NAME+ID+BASE64: of a log (type 1), or of a witness (type 4)."""
    def __init__(self, name, content):
        self.name, self.kind, self.public = name, content[0], content[1:]
        self.id = sha256(name.encode() + b'\n' + content)[:4]
        self.text = '%s+%s+%s' % (name, self.id.hex(), to_base64(content))
def read_key(argument, kind):
    """Reads a key, or the file that has it on its only line."""
    text = argument + '\n' if KEY(argument) else read_text(argument)
    match = KEY(text[:-1])
    key = Key(match[1], from_base64(match[3])) if match else None
    if not key or (key.kind, len(key.public), key.text + '\n') != (kind, 32, text):
        raise Wrong('not a verifier key of type %d' % kind)
    return key

class Note:
    """A checkpoint and the signature lines under it."""
    def __init__(self, text):
        match, self.place = NOTE.fullmatch(text), Wrong.place
        if not match: raise Wrong('not a checkpoint')
        self.body, self.origin, self.size, self.root = match[1], match[2], int(match[3]), from_base64(match[4], 32)
        lines = [line[2:].split(' ') for line in match[5].split('\n')[:-1]]
        self.lines = [(name, from_base64(content)) for name, content in lines]
    def signed_by(self, key):
        """True or False, or None if it has no line of this key."""
        found = [content[4:] for name, content in self.lines if (name, content[:4]) == (key.name, key.id)]
        if key.kind == 1: held = [is_signed(key.public, self.body.encode(), signature) for signature in found]
        else: held = [is_signed(key.public, ('cosignature/v1\ntime %d\n%s' % (
            int.from_bytes(signature[:8], 'big'), self.body)).encode(), signature[8:]) for signature in found]
        return all(held) if held else None

# ---- Values ----------------------------------------------------------------------------------------------------------
CURRENCIES = {}  # from checks.sql: the decimals of each
LIMIT = 2 ** 62  # sums and products of the rules stay below it, so that they are exact in every database
DAY_ZERO = date(1970, 1, 1).toordinal()
NUMBER = '(?!-0\\Z)-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?'
PAIR = re.compile('((?:[^%&=:]|%25|%26|%3D|%3A|%2E)*)(?:=((?:[^%&]|%25|%26)*)|'
                  ':(' + NUMBER + '|true|false|null|\\[\\]|\\{\\}))', re.DOTALL).fullmatch

class Known(dict):
    """Values that were read before: most days, amounts and event numbers occur often."""
    def __init__(self, read): self.read = read
    def __missing__(self, text):
        if len(self) > 100000: self.clear()
        value = self[text] = self.read(text)
        return value
def fitting(pattern, convert=str):
    """A reader of texts that have a form; it fails with a TypeError or ValueError."""
    fits = re.compile(pattern).fullmatch
    return lambda text: convert(fits(text)[0])
def minor_units(digits):
    decimals = '(?:\\.[0-9]{0,%d}[1-9])?' % (digits - 1) if digits else ''
    return Known(fitting('(?!-0\\Z)-?(?:0|[1-9][0-9]{0,14})' + decimals, lambda text: int(
        text.partition('.')[0] + text.partition('.')[2].ljust(digits, '0'))))
def read_map(text):
    """The pairs of path and value of a JSON value that is written flat."""
    pairs = []
    for match in map(PAIR, text.split('&')):
        value = match[2].replace('%26', '&').replace('%25', '%') if match[3] is None else match[3]
        if pairs and pairs[-1][0] >= match[1]: raise ValueError
        pairs.append((match[1], None if match[3] == 'null' else value))
    return pairs
def unescape(text):
    if text == '\\N': return None
    if '\\' in re.sub('\\\\[\\\\tnr]', '', text): raise Wrong('malformed escape')
    return re.sub('\\\\.', lambda escape: {'\\': '\\', 't': '\t', 'n': '\n', 'r': '\r'}[escape[0][1]], text)
AMOUNTS = [minor_units(digits) for digits in range(5)]
DAYS = Known(fitting('[0-9]{4}-[0-9]{2}-[0-9]{2}', lambda text: date.fromisoformat(text).toordinal() - DAY_ZERO))
READERS = {'int': Known(fitting('0|-?[1-9][0-9]{0,17}', int)).__getitem__, 'rate': AMOUNTS[4].__getitem__,
           'number': fitting(NUMBER), 'day': DAYS.__getitem__, 'flag': fitting('true|false', 'true'.__eq__),
           'time': fitting('[0-9-]{10}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}Z',
                           lambda text: (text, DAYS[text[:10]])[0]), 'hex': fitting('(?:[0-9a-f]{2})*'),
           'personal': fitting('(?:#[A-Za-z0-9+/]{43}=)?')}
INTEGERS = ('int', 'amount', 'rate', 'day', 'flag')

# ---- checks.sql: forms, rules and views ------------------------------------------------------------------------------
TYPES = 'int|amount|rate|number|day|time|flag|hex|map|personal'
COLUMN = re.compile('([a-z][A-Za-z0-9_.]*)(\\??)!?(?::(%s))?(?:@([a-z_]+))?' % TYPES)

class Form:
    """How the lines of one kind of fact are written, and the table that they fill."""
    def __init__(self, kind, *columns):
        self.kind, self.rows, self.pairs, parts = kind, [], [], [COLUMN.fullmatch(column) for column in columns]
        self.names, self.types = [part[1] for part in parts], [part[3] or 'text' for part in parts]
        self.required = [i for i, part in enumerate(parts) if not part[2]]
        self.typed = [(i, READERS[kind]) for i, kind in enumerate(self.types) if kind in READERS]
        self.maps = [i for i, kind in enumerate(self.types) if kind == 'map']
        amounts = [(i, part[4] or 'currency') for i, part in enumerate(parts) if part[3] == 'amount']
        self.amounts = [(i, self.names.index(currency)) for i, currency in amounts]
        self.rates = [i for i, kind in enumerate(self.types) if kind == 'rate']
        self.key = [i for i, name in enumerate(self.names) if name in ('partner_id', 'currency', 'arrangement', 'root')]
        month = 'posted_month' if kind == 'ledger_rows' else 'month'
        self.month = self.names.index(month) if month in self.names else 0
        typed = zip(self.names, ('INTEGER' if kind in INTEGERS else 'TEXT' for kind in self.types))
        self.create = 'CREATE TABLE "%s" (log_no INTEGER, %s)' % (kind, ', '.join('"%s" %s' % each for each in typed))
    def read(self, number, fields):
        """Checks and converts the fields of a line; returns the sum of its amounts without their signs."""
        i = total = 0
        try:
            for i, read in self.typed:
                if fields[i] is not None: fields[i] = read(fields[i])
            for i in self.maps:
                if fields[i] is not None: self.pairs += [(number, self.names[i], *pair) for pair in read_map(fields[i])]
            for i, currency in self.amounts:
                if fields[i] is not None:
                    fields[i] = AMOUNTS[CURRENCIES[fields[currency]]][fields[i]]
                    total += abs(fields[i])
        except (TypeError, ValueError, KeyError):
            raise Wrong('%s: malformed %s' % (self.names[i], self.types[i])) from None
        if any(2 * total * max(10 ** 6, abs(fields[i] or 0)) > LIMIT for i in self.rates):
            raise Wrong('amount times rate may pass 2^62')
        self.rows.append((number, *fields))
        return total
    def flush(self, db):
        db.executemany('INSERT INTO "%s" VALUES (?%s)' % (self.kind, ',?' * len(self.names)), self.rows)
        db.executemany('INSERT INTO map_values VALUES (?,?,?,?)', self.pairs)
        self.rows, self.pairs = [], []

class Checks:
    """The parts of checks.sql. Blank lines separate rules and views; the comments of each come first."""
    def __init__(self, text):
        for digits, codes in re.findall('(?m)^-- CURRENCIES ([0-4]) (.*)', text):
            CURRENCIES.update(dict.fromkeys(codes.split(' '), int(digits)))
        forms = re.findall('(?m)^-- FORM (\\S+) (.*)', text)
        text = re.sub('(?m)^-- EACH (.*)\n([^;\n]*)', lambda each: '\nUNION ALL '.join(
            each[2].replace('KIND', kind).replace('COLUMN', column)
            for kind, columns in forms for column in re.findall(each[1], columns)), text)
        prepare, rest = re.fullmatch('.*?\n-- PREPARE(.*?)\n-- CHECKS(.*)', text, re.DOTALL).groups()
        self.forms = {kind: Form(kind, *columns.split(' ')) for kind, columns in forms}
        self.rules, self.views = [], {}
        self.prepare = [each for each in re.sub('(?m)^--.*\n', '', prepare + '\n').split(';\n') if each.strip()]
        for block in re.split('\n\n+', rest):
            title, *more = re.findall('(?m)^-- (.*)', block) or ['']
            query = re.sub('(?m)^--.*\n?', '', block).strip().rstrip(';')
            name = re.fullmatch('(VIEW )?([a-z0-9_-]+):? ?(.*)', title)
            columns = [column for line in more if line.startswith('columns ') for column in line[8:].split(' ')]
            words = [line for line in more if line != 'whole' and not line.startswith('columns ')]
            if query and name and name[1]: self.views[name[2]] = Form('view', *columns), 'whole' in more, query
            elif query and name: self.rules.append((name[2], ' '.join([name[3], *words]), 'whole' in more, Form('rule', *columns), query))

# ---- Packs -----------------------------------------------------------------------------------------------------------
FILE = ('(?:log\\.tsv|edge|vkey|checks\\.sql|README\\.txt|dictionary\\.csv|consistency/[1-9][0-9]{0,14}|'
        'checkpoints/[1-9][0-9]{0,14}(?:\\.tsr)?|[a-z][a-z0-9-]*\\.(?:csv|jsonl|ledger|beancount))')
COUNT, MONTH = '(0|[1-9][0-9]{0,14})', '"([0-9]{4}-(?:0[1-9]|1[0-2]))"'
HEAD = ['\\{', '  "format": "reckoner-pack",', '  "version": 2,', '  "kind": "[a-z_-]+",', '  "data_format": "[a-z]+",',
        '  "from": %s,' % MONTH, '  "to": %s,' % MONTH, '  "origin": "(%s)",' % NAME, '  "first": %s,' % COUNT,
        '  "size": %s,' % COUNT, '  "created_at": "([0-9-]{10})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\\.[0-9]{3,6}Z",',
        '  "program": "[A-Za-z0-9.+-]+",', '  "files": \\[']
listed = lambda indent, item: '\\{(?:\n%s%s(?:,\n%s%s)*\n%s)?\\}' % (indent, item, indent, item, indent[2:])
TOTALS = listed(' ' * 8, '"[A-Z]{3}": ' + listed(' ' * 10, '"[A-Za-z_]+": "-?[0-9.]+"'))
ENTRY = re.compile('    \\{\n      "name": "(%s)",\n      "bytes": %s,\n      "sha256": "([0-9a-f]{64})"'
                   '(?:,\n      "rows": %s)?(?:,\n      "totals": (%s))?\n    \\}(?:,\n|(\n  \\]\n\\}\n\\Z))' % (
                       FILE, COUNT, COUNT, TOTALS))

class Pack:
    """A folder with exactly the files of its manifest."""
    def __init__(self, path):
        self.path, self.files, found, strange = path.rstrip('/'), {}, set(), []
        os.listdir(at(self.path))
        for folder, folders, names in os.walk(self.path):
            for name in folders + names:
                inside = os.path.relpath(os.path.join(folder, name), self.path).replace(os.sep, '/')
                mode = os.lstat(os.path.join(folder, name)).st_mode
                if stat.S_ISREG(mode) and re.fullmatch(FILE + '|manifest\\.json', inside): found.add(inside)
                elif not stat.S_ISDIR(mode) or inside not in ('checkpoints', 'consistency'): strange.append(inside)
        if strange: raise Wrong('%s is not a file of a pack' % printable(min(strange)))
        self.read_manifest(read_text(self.path + '/manifest.json'))
        needed = {'log.tsv', 'checks.sql', 'README.txt', 'manifest.json', 'checkpoints/%d' % self.size}
        if self.first: needed |= {'edge', 'checkpoints/%d' % self.first}
        for name in sorted(found ^ {'manifest.json', *self.files} | needed - found):
            raise Wrong('%s/%s is %s' % (at(self.path), name, 'not in the manifest' if name in found else 'missing'))
        for name, (size, digest, _, _) in self.files.items():
            actual = hashlib.sha256()
            with open(at('%s/%s' % (self.path, name)), 'rb') as content:
                for chunk in iter(lambda: content.read(1 << 20), b''): actual.update(chunk)
                if (content.tell(), actual.hexdigest()) != (size, digest): raise Wrong('not the file of the manifest')
        sizes = lambda folder: sorted(int(name[12:]) for name in found if re.fullmatch(folder + '/[0-9]+', name))
        self.notes = [self.read_note(size, found) for size in sizes('checkpoints')]
        self.proofs = {size: self.read_hashes('consistency/%d' % size) for size in sizes('consistency')}
        self.edge = self.read_hashes('edge', str(self.first)) if 'edge' in found else []
        if len(self.edge) != bin(self.first).count('1') or (self.first > 0) != ('edge' in found):
            raise Wrong('another edge')
        self.keys = [read_key(self.path + '/vkey', 1)] if 'vkey' in found else []
    def read_manifest(self, text):
        lines, values, path, entry = text.split('\n'), [], self.path + '/manifest.json', None
        for number, form in enumerate(HEAD, 1):
            at(path, number)
            match = re.fullmatch(form, lines[number - 1] if number <= len(lines) else '')
            if not match: raise Wrong('malformed')
            values += match.groups()
        self.from_month, self.to_month, self.origin, self.first, self.size = *values[:3], int(values[3]), int(values[4])
        try: at(path, 11), DAYS[values[5]]
        except ValueError: raise Wrong('malformed') from None
        if self.from_month > self.to_month or self.first > self.size: raise Wrong('ends before it begins')
        offset = len('\n'.join(lines[:len(HEAD)])) + 1
        while not (entry and entry[6]):
            at(path, text.count('\n', 0, offset) + 1)
            entry = ENTRY.match(text, offset)
            totals = json.loads(entry[5] or '{}') if entry else {}
            again = json.dumps(totals, indent=2).replace('\n', '\n      ')
            if not entry or entry[1] in self.files or entry[5] not in (None, again):
                raise Wrong('malformed, or a name twice')
            self.files[entry[1]], offset = (int(entry[2]), entry[3], entry[4], totals), entry.end()
    def read_note(self, size, found):
        note = Note(read_text('%s/checkpoints/%d' % (self.path, size)))
        if note.size != size or not self.first <= size <= self.size: raise Wrong('of another size')
        if 'checkpoints/%d.tsr' % size in found:
            with open(at('%s/checkpoints/%d.tsr' % (self.path, size)), 'rb') as file: stamp = file.read(1 << 16)
            if b'\x04\x20' + sha256(note.body.encode()) not in stamp: raise Wrong('not a time stamp of this checkpoint')
        return note
    def read_hashes(self, name, head=None):
        path, skipped = '%s/%s' % (self.path, name), head is not None
        lines = read_text(path).split('\n')
        if lines.pop() or head not in (None, *lines[:1]): raise Wrong('malformed')
        return [from_base64(line, at(path, number) and 32) for number, line in enumerate(lines, 1) if number > skipped]

# ---- The log ---------------------------------------------------------------------------------------------------------
CONTROLS = bytes(set(range(32)) - {9, 10})
def first_closed(packs):
    """The first month that was closed includes the rows that are posted to months before it."""
    for pack in packs:
        with open(pack.path + '/log.tsv', 'rb') as file:
            for line in file:
                if line.startswith(b'closed_months\t'): return line.decode(errors='replace').split('\t', 3)[-2]
    return ''

class Log:
    """The leaves of all packs: their tree, and one table for each kind of fact."""
    def __init__(self, db, forms, packs, held):
        self.db, self.forms, self.first, self.tree = db, forms, packs[0].first, Tree(packs[0].first, packs[0].edge)
        self.marks = {note.size: None for note in itertools.chain(held, *(pack.notes for pack in packs))}
        self.number = self.amounts = self.roots = self.earlier_roots = 0
        self.partners, self.other_roots = {}, []
        self.special = {kind: [] for kind in ('closed_months', 'log_keys', 'log_continues')}
        self.begin = packs[0].from_month if self.first else first_closed(packs)
        for form in forms.values(): db.execute(form.create)
        db.execute('CREATE TABLE map_values (log_no INTEGER, column_name TEXT, path TEXT, value TEXT)')
        db.execute('CREATE TABLE currencies (code TEXT, digits INTEGER)')
        db.execute('CREATE TABLE pack (first INTEGER, size INTEGER, from_month TEXT, to_month TEXT)')
        db.executemany('INSERT INTO currencies VALUES (?,?)', CURRENCIES.items())
    def read(self, pack):
        at(pack.path)
        known, again = self.tree.size, Tree(pack.first, pack.edge)
        if pack.first > known: raise Wrong('begins at leaf %d instead of %d' % (pack.first, known))
        if pack.first == known and pack.first in self.marks: self.marks[pack.first] = self.tree.root()
        if pack.first and again.root() != (self.marks.get(pack.first) if pack.first < known else self.tree.root()):
            raise Wrong('edge: not of the leaves before')
        path, line = pack.path + '/log.tsv', 0
        with open(path, 'rb') as file:
            try:
                for line, raw in enumerate(file, 1):
                    if again.size >= known: self.add(raw)
                    else:  # A leaf that the pack before has, too.
                        again.add(sha256(b'\0' + raw[:-1]))
                        if again.size == known and again.root() != self.tree.root():
                            raise Wrong('other lines than in the pack before')
            except Wrong: raise Wrong(at(path, line) and sys.exc_info()[1]) from None
        at(path)
        if pack.first + line != pack.size: raise Wrong('%d lines instead of %d' % (line, pack.size - pack.first))
        if pack.size < known and again.root() != self.marks.get(pack.size): raise Wrong('other lines than in the pack before')
        for form in self.forms.values(): form.flush(self.db)
        self.db.execute('DELETE FROM pack')
        self.db.execute('INSERT INTO pack VALUES (?,?,?,?)', (pack.first, pack.size, pack.from_month, pack.to_month))
    def add(self, raw):
        if raw[-1:] != b'\n': raise Wrong('no line end')
        if len(raw) > 65536: raise Wrong('longer than 65535 bytes')
        try: kind, *fields = raw[:-1].decode().split('\t')
        except UnicodeDecodeError: raise Wrong('not UTF-8') from None
        if len(raw.translate(None, CONTROLS)) != len(raw): raise Wrong('a control character')
        leaf, tree, form = sha256(b'\0' + raw[:-1]), self.tree, self.forms.get(kind)
        tree.add(leaf)
        if tree.size in self.marks: self.marks[tree.size] = tree.root()
        if form is None: raise Wrong('not a kind of fact')
        width = len(form.names) + 1
        if len(fields) != width: raise Wrong('%d columns instead of %d' % (len(fields), width))
        number = int(fields[0]) if re.fullmatch('[1-9][0-9]{0,14}', fields[0]) else 0
        if number <= self.number: raise Wrong('its number does not follow that of the line before')
        self.number, fields = number, fields[1:]
        if b'\\' in raw:
            fields = [unescape(field) if '\\' in field else field for field in fields]
            for i in form.required:
                if fields[i] is None: raise Wrong('%s: NULL' % form.names[i])
        self.amounts += form.read(number, fields)
        if self.amounts > LIMIT: raise Wrong('the sum of all amounts may pass 2^62')
        if kind in self.special: self.special[kind].append((tree.size - 1, dict(zip(form.names, fields))))
        elif kind == 'ledger_rows':
            month = fields[form.month] if self.first else max(fields[form.month], self.begin)
            self.partners.setdefault((month, *[fields[i] for i in form.key]), Tree()).add(leaf)
        elif kind == 'month_partners' and fields[form.month] < self.begin: self.earlier_roots += 1
        elif kind == 'month_partners':
            key = fields[form.month], *[fields[i] for i in form.key[:3]]
            tree, self.roots = self.partners.pop(key, None), self.roots + 1
            if not tree or to_base64(tree.root()) != fields[form.key[3]]: self.other_roots.append(' '.join(key))
        if len(form.rows) == 10000: form.flush(self.db)

# ---- What is reported ------------------------------------------------------------------------------------------------
COUNT_OF = {'ok': 0, 'WRONG': 0, 'open': 0}
HIDDEN = re.compile('[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')
printable = lambda value: '(inexact)' if isinstance(value, float) else HIDDEN.sub('?', str(value))[:100]
def wrapped(text, indent):
    lines, width = [''], 80 - indent
    for word in text.split(' '):
        if lines[-1] and len(lines[-1]) + len(word) >= width: lines.append(word)
        else: lines[-1] += ' ' * bool(lines[-1]) + word
    return ('\n' + ' ' * indent).join(lines)
def say(verdict, text):
    COUNT_OF[verdict] += 1
    print('%-5s %s' % (verdict, wrapped(text, 6)))
def check(name, wrong, text): say('WRONG' if wrong else 'ok', '%s: %s' % (name, '; '.join(wrong[:5]) or text))

def check_log(packs, log, held, keys, witnesses):
    size, origin, origins, wrong = log.tree.size, packs[-1].origin, [], []
    say('ok', 'log: leaves %d to %d of %s, root %s' % (log.first, size - 1, origin, to_base64(log.tree.root())))
    for index, fact in reversed(log.special['log_continues']):
        if (fact['origin'], fact['kept_size']) != (origin, index): wrong.append('leaf %d continues another log' % index)
        origins, origin = [(index, origin), *origins], fact['follows']
    origin_of = lambda note: ([origin] + [name for index, name in origins if note.size > index])[-1]
    notes = [note for pack in packs for note in pack.notes]
    for note in notes:
        if note.root != log.marks[note.size]: wrong.append('%s: not the root of these leaves' % note.place)
        if note.origin != origin_of(note): wrong.append('%s: of another log, %s' % (note.place, note.origin))
    check('checkpoints', wrong, '%d checkpoints match these leaves' % len(notes))
    wrong = ['%s/consistency/%d: not a proof' % (pack.path, old) for pack in packs for old, path in pack.proofs.items()
             if not is_consistent(old, log.marks.get(old), pack.first, log.marks.get(pack.first), path)]
    check('consistency', wrong, '%d proofs lead to the first leaf of their pack' % sum(len(p.proofs) for p in packs))
    covered = check_signatures(notes, log, keys or packs[-1].keys, witnesses)
    if not keys and packs[-1].keys: say('open', 'signatures: the key is that of the pack; compare it with yours (--key)')
    for note in held:
        verdict, text = compare_held(note, log, packs[0], keys, origin_of(note))
        say(verdict, 'held: %s: %s' % (note.place, text))
        if verdict == 'ok': covered = max(covered, note.size)
    months = ', '.join(printable(fact['month']) for index, fact in log.special['closed_months'] if index >= covered)
    if covered < size: say('open', 'held: no checkpoint that you hold covers the leaves from %d on%s' % (
        max(covered, log.first), months and ', and the close of ' + months))
    check('partners', log.other_roots, '%d roots of partners are those of their rows, %d belong to rows before these '
          'packs' % (log.roots, log.earlier_roots))
def check_signatures(notes, log, keys, witnesses):
    """Checks the last signature, and all others that are there; returns the leaves that a witness cosigned."""
    wrong, unsigned, introduced, cosigned, last = [], [], [], 0, notes[-1]
    for index, fact in log.special['log_keys']:
        key = Key(fact['key_name'], b'\1' + from_base64(fact['public_key']))
        introduced.append(key.public)
        previous = from_base64(fact['previous'] or '')
        if fact['signature'] is None: unsigned += [(key, fact['reason'])] * (previous in [each.public for each in keys])
        elif not is_signed(previous, (key.text + '\n').encode(), from_base64(fact['signature'])):
            wrong.append('leaf %d: the previous key did not sign this key' % index)
        elif previous in [each.public for each in keys]: keys = keys + [key]
    signed = [note for note in notes if any(note.signed_by(key) for key in keys)]
    wrong += ['%s: not signed by %s' % (note.place, key.text) for note in notes for key in keys + witnesses
              if note.signed_by(key) is False]
    if last not in signed:
        reason = [printable(reason) for key, reason in unsigned if last.signed_by(key)]
        if last.lines and keys and not reason: wrong.append('%s: signed by other keys only' % last.place)
        else: say('open', 'signatures: the last checkpoint is %s' % (
            'signed by a key that the former one did not sign: ' + reason[0] if reason else
            'not signed' if keys else 'not signed by a known key'))
    elif not log.first and introduced and not any(last.signed_by(key) for key in keys if key.public in introduced):
        say('open', 'signatures: the log does not introduce the key of the last checkpoint')
    check('signatures', wrong, '%d of %d checkpoints are signed by %s' % (
        len(signed), len(notes), ', '.join(key.text for key in keys) or 'no key'))
    for key in witnesses:
        sizes = [note.size for note in notes if note.signed_by(key)]
        say('ok' if sizes else 'open', 'witness: %s cosigned %d of %d checkpoints' % (key.name, len(sizes), len(notes)))
        cosigned = max([cosigned, *sizes])
    return cosigned
def compare_held(note, log, pack, keys, origin):
    if any(note.signed_by(key) is False for key in keys): return 'WRONG', 'its signature is not of the key'
    for index, fact in log.special['log_continues']:
        if note.origin == fact['follows'] and note.size > index:
            lost = fact['lost_size'], fact['lost_root']
            is_lost = note.size < lost[0] or (note.size, to_base64(note.root)) == lost
            if is_lost: return 'open', 'of leaves that were lost'
            return 'WRONG', 'not of the leaves that the log says were lost'
    if note.size < log.first and note.size in pack.proofs:
        is_ours = is_consistent(note.size, note.root, log.first, log.marks[log.first], pack.proofs[note.size])
        return ('ok', 'its %d leaves are a beginning of this log' % note.size) if is_ours else ('WRONG', 'NOT A BEGINNING OF THIS LOG')
    if note.origin != origin: return 'WRONG', 'of another log, %s' % note.origin
    if note.size < log.first: return 'open', 'earlier than these packs, without a proof'
    if note.size > log.tree.size: return 'open', 'later than these packs'
    return ('ok', 'its %d leaves belong to this log' % note.size) if log.marks[note.size] == note.root else ('WRONG', 'NOT OF THESE LEAVES')

# ---- Rules and data files --------------------------------------------------------------------------------------------
to_json = lambda value: json.dumps(value, ensure_ascii=False)
def decimal(value, digits):
    text = str(abs(value)).rjust(digits + 1, '0')
    return '-' * (value < 0) + (text[:-digits] + '.' + text[-digits:] if digits else text)
def written(value, kind, currency):
    if value is None: return None
    if kind == 'amount': return decimal(value, CURRENCIES[currency])
    if kind == 'rate': return re.sub('\\.?0+$', '', decimal(value, 4))
    if kind == 'day': return date.fromordinal(value + DAY_ZERO).isoformat()
    return bool(value) if kind == 'flag' else value
def cell(value, kind):
    """A cell of a CSV file, in which a spreadsheet finds no formula."""
    text = '' if value is None else to_json(value) if kind in ('flag', 'int') else value
    is_formula = kind == 'text' and re.match("['\t\r\n]|[ \t\r\n]*[=+@＝＋－＠-]", text)
    if is_formula and not re.fullmatch('-?[0-9]+(\\.[0-9]+)?', text): text = "'" + text
    return '"%s"' % text.replace('"', '""') if re.search('[",\r\n]', text) else text
def compare_view(file, form, rows, is_csv, expected_rows, expected_totals):
    """Compares a data file, line by line, with the rows of the query that derives it from the log."""
    line, count, sums, currencies = 0, 0, collections.Counter(), dict(form.amounts)
    for row in itertools.chain([None] if is_csv else [], rows):
        if row:
            values = [written(row[i], kind, row[currencies.get(i, 0)]) for i, kind in enumerate(form.types)]
            for i, currency in form.amounts: sums[row[currency], form.names[i]] += row[i] or 0
            count += 1
        if is_csv: text = ','.join(map(cell, values, form.types)) if row else ','.join(form.names)
        else: text = '{%s}' % ', '.join('"%s" : %s' % (name, to_json(v)) for name, v in zip(form.names, values))
        for part in text.split('\n'):
            line += 1
            if file.readline() != part.encode() + b'\n': return ['line %d: the log has %s' % (line, printable(part))]
    if file.readline(): return ['line %d: not in the log' % (line + 1)]
    if expected_rows not in (None, str(count)): return ['%d rows, not %s as in the manifest' % (count, expected_rows)]
    return ['%s %s: not as in the manifest' % (currency, name) for currency, totals in expected_totals.items()
            for name, total in totals.items() if decimal(sums[currency, name], CURRENCIES.get(currency, 2)) != total]
def compare_views(pack, checks, db):
    """Data files show the state at the end of their pack."""
    for name, (_, _, rows, totals) in pack.files.items():
        stem, _, kind = name.rpartition('.')
        form, whole, query = checks.views.get(stem, (None, False, ''))
        if kind not in ('csv', 'jsonl', 'ledger', 'beancount'): continue
        if not form or kind not in ('csv', 'jsonl') or whole and pack.first:
            say('open', '%s/%s: not compared with the log' % (pack.path, name))
            continue
        with open('%s/%s' % (pack.path, name), 'rb') as file:
            try: wrong = compare_view(file, form, db.execute(query), kind == 'csv', rows, totals)
            except (sqlite3.Error, TypeError, KeyError): wrong = ['the query failed']
        check('%s/%s' % (pack.path, name), wrong, 'as in the log')
def finding(form, row):
    """What a rule found: where, then its columns by name, with amounts and days as people write them."""
    currencies = dict(form.amounts)
    if len(form.names) != len(row): return ' '.join('-' if value is None else printable(value) for value in row)
    try: row = [written(value, kind, row[currencies.get(i, 0)]) for i, (value, kind) in enumerate(zip(row, form.types))]
    except (KeyError, TypeError, ValueError, OverflowError): pass
    place, *values = ['-' if value is None else printable(value) for value in row]
    return '%s: %s' % (place, ', '.join(map(' '.join, zip(form.names[1:], values)))) if set(values) - {'-'} else place
def run_rules(rules, first, db):
    decided = [rule for rule in rules if not (rule[2] and first)]
    broken = 0
    for name, sentence, _, form, query in decided:
        try: rows = db.execute('SELECT *, count(*) OVER () FROM (%s) LIMIT 5' % query).fetchall()
        except sqlite3.Error as error: rows = [('the query failed, %s' % error, 1)]
        if not rows: continue
        broken += 1
        say('WRONG', '%s: %s' % (name, sentence))
        for row in rows: print(' ' * 6 + '- ' + wrapped(finding(form, row[:-1]), 8))
        if rows[0][-1] > len(rows): print('        and %d more' % (rows[0][-1] - len(rows)))
    if len(decided) < len(rules):
        say('open', 'rules: %d look back before this pack: Not decidable from this pack.' % (len(rules) - len(decided)))
    say('ok', 'rules: %d of %d hold' % (len(decided) - broken, len(rules)))

def verify(options):
    checks, text = Checks(read_text(options.checks)), read_text(options.checks)
    keys = [read_key(at(each), 1) for each in options.key]
    witnesses = [read_key(at(each), 4) for each in options.witness]
    held = [Note(read_text(each).replace('\r\n', '\n')) for each in options.held]
    packs = [Pack(path) for path in options.packs]
    for path in (pack.path + '/checks.sql' for pack in packs):
        if read_text(path) != text: print('note  ' + wrapped('%s has other rules; those of this verifier are used' % path, 6))
    db = sqlite3.connect(options.db, isolation_level=None)
    db.execute('PRAGMA synchronous=OFF')
    db.execute('BEGIN')
    log = Log(db, checks.forms, packs, held)
    for pack in packs:
        log.read(pack)
        db.execute('SAVEPOINT pack')
        for statement in checks.prepare: db.execute(statement)
        compare_views(pack, checks, db)
        if pack is not packs[-1]: db.execute('ROLLBACK TO pack')
    check_log(packs, log, held, keys, witnesses)
    run_rules(checks.rules, log.first, db)
    db.execute('COMMIT')

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add, beside = parser.add_argument, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'checks.sql')
    add('packs', nargs='+', metavar='PACK', help='the folder of a pack')
    add('--key', action='append', default=[], help="the log's verifier key, or a file with it")
    add('--held', action='append', default=[], metavar='NOTE', help='a checkpoint that you hold')
    add('--witness', action='append', default=[], metavar='KEY', help='the verifier key of a witness')
    add('--checks', default=beside, help='the rules (checks.sql beside this program)')
    add('--db', default=':memory:', help='keep the tables in this new file')
    add('--allow', action='store_true', help='exit with 0 also if something is open')
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding='utf-8')
    try: verify(options)
    except (Wrong, OSError) as error:
        say('WRONG', '%s: %s' % (printable(Wrong.place), error if isinstance(error, Wrong) else 'cannot be read'))
    wrong, undecided = COUNT_OF['WRONG'], COUNT_OF['open']
    print('%d wrong.' % wrong if wrong else 'All checks hold.' if not undecided else
          'Nothing is wrong; %d open%s.' % (undecided, ', allowed' if options.allow else ''))
    sys.exit(1 if wrong else 2 if undecided and not options.allow else 0)

if __name__ == '__main__': main()
