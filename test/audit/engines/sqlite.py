"""Runs the rules of checks.sql over a log.tsv in SQLite: python3 sqlite.py CHECKS LOG [--times] [--rule NAME]

Prints one line for each thing that is wrong: the rule's name and the columns of its answer, separated by tabs.
"""
import datetime
import re
import sqlite3
import sys
import time

DIGITS = {c: 0 for c in "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split()}
DIGITS.update({c: 3 for c in "BHD IQD JOD KWD LYD OMR TND".split()})
DIGITS.update({"CLF": 4, "UYW": 4})
ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
EPOCH = datetime.date(1970, 1, 1).toordinal()


def read_checks(path):
    """The forms, the statements that prepare, and the rules as (name, sentence, whole, query)."""
    text = open(path, encoding="utf-8").read()
    columns_of = re.findall(r"(?m)^-- FORM (\S+) (.*)", text)
    text = re.sub(r"(?m)^-- EACH (.*)\n([^;\n]*)", lambda each: "\nUNION ALL ".join(
        each[2].replace("KIND", kind).replace("COLUMN", column)
        for kind, columns in columns_of for column in re.findall(each[1], columns)), text)
    head, rest = text.split("-- PREPARE\n", 1)
    prepare, checks = rest.split("-- CHECKS\n", 1)
    forms = {}
    for line in head.splitlines():
        if line.startswith("-- FORM "):
            kind, *columns = line[8:].split(" ")
            forms[kind] = [re.fullmatch(r"(\w+)(\??)!?(?::([\w@]+))?", column).groups() for column in columns]
    statements = [s.strip() for s in prepare.split(";\n") if s.strip()]
    rules = []
    for block in checks.split("-- VIEWS\n")[0].strip().split("\n\n"):
        lines = block.split("\n")
        name, sentence = re.fullmatch(r"-- (\w+): (.*)", lines[0]).groups()
        whole = lines[1] == "-- whole"
        rules.append((name, sentence, whole, "\n".join(lines[2 if whole else 1:]).rstrip(";")))
    return forms, statements, rules


def unescape(text):
    return re.sub(r"\\[\\tnr]", lambda found: ESCAPES[found[0]], text) if "\\" in text else text


def units(text, digits):
    """A decimal as a whole number of its smallest unit."""
    whole, _, part = text.partition(".")
    if len(part) > digits:
        raise ValueError(f"{text} has more than {digits} decimals")
    return int(whole + part.ljust(digits, "0"))


def map_items(text):
    for item in unescape(text).split("&"):
        place = min(at for at in (item.find("="), item.find(":")) if at >= 0)
        value = item[place + 1:]
        if item[place] == "=":
            value = value.replace("%26", "&").replace("%25", "%")
        elif value == "null":
            value = None
        yield item[:place], value


def reader(columns):
    """A function from the fields of a line to its values and the maps among them."""
    place = {name: index for index, (name, _, _) in enumerate(columns)}

    def read(fields):
        values, maps = [], []
        for (name, _, kind), text in zip(columns, fields, strict=True):
            if text == "\\N":
                values.append(None)
            elif kind is None or kind == "number":
                values.append(unescape(text))
            elif kind == "int":
                values.append(int(text))
            elif kind.startswith("amount"):
                currency = fields[place[kind[7:] or "currency"]]
                values.append(units(text, DIGITS.get(currency, 2)))
            elif kind == "rate":
                values.append(units(text, 4))
            elif kind == "day":
                values.append(datetime.date.fromisoformat(text).toordinal() - EPOCH)
            elif kind == "flag":
                values.append(int(text == "true"))
            elif kind == "map":
                values.append(text)
                maps.append((name, text))
            else:
                values.append(text)
        return values, maps

    return read


def load(db, forms, lines):
    """Makes a table of each kind and fills it."""
    readers = {}
    for kind, columns in forms.items():
        types = ", ".join(
            f'"{name}" {"TEXT" if t in (None, "time", "map", "hex", "number") else "INTEGER"}' for name, _, t in columns)
        db.execute(f'CREATE TABLE "{kind}" (log_no INTEGER, {types})')
        readers[kind] = reader(columns)
    db.execute("CREATE TABLE map_values (log_no INTEGER, column_name TEXT, path TEXT, value TEXT)")
    db.execute("CREATE TABLE currencies (code TEXT, digits INTEGER)")
    db.execute("CREATE TABLE pack (first INTEGER, size INTEGER, from_month TEXT, to_month TEXT)")
    batches = {kind: [] for kind in readers}
    months, currencies, size = set(), set(), 0
    for line in lines:
        if line == "\n":
            continue
        kind, number, *fields = line.rstrip("\n").split("\t")
        values, maps = readers[kind](fields)
        size += 1
        for index, (name, _, _) in enumerate(forms[kind]):
            if "currency" in name and values[index] is not None:
                currencies.add(values[index])
            if name == "month" and kind == "closed_months":
                months.add(values[index])
        batch = batches[kind]
        batch.append((int(number), *values))
        if len(batch) == 10000:
            insert(db, kind, batch)
        for name, text in maps:
            db.executemany("INSERT INTO map_values VALUES (?, ?, ?, ?)",
                           ((int(number), name, path, value) for path, value in map_items(text)))
    for kind, batch in batches.items():
        insert(db, kind, batch)
    db.executemany("INSERT INTO currencies VALUES (?, ?)", ((code, DIGITS.get(code, 2)) for code in sorted(currencies)))
    db.execute("INSERT INTO pack VALUES (0, ?, ?, ?)", (size, min(months, default=None), max(months, default=None)))


def insert(db, kind, batch):
    if batch:
        db.executemany(f'INSERT INTO "{kind}" VALUES ({", ".join("?" * len(batch[0]))})', batch)
        batch.clear()


def main(checks, log, *options):
    forms, statements, rules = read_checks(checks)
    only = options[options.index("--rule") + 1] if "--rule" in options else None
    began = time.process_time()

    def lap(what):
        nonlocal began
        now = time.process_time()
        if "--times" in options and now - began > 0.05:
            print(f"{now - began:7.3f} s {what}", file=sys.stderr)
        began = now

    db = sqlite3.connect(":memory:")
    with open(log, encoding="utf-8", newline="\n") as lines:
        load(db, forms, lines)
    lap("load")
    for statement in statements:
        try:
            db.execute(statement)
        except sqlite3.Error as error:
            sys.exit(f"{error}: {statement}")
        lap(statement.split("(")[0][:60].replace("\n", " "))
    for name, _, _, query in rules:
        if only not in (None, name):
            continue
        try:
            for row in sorted(db.execute(query), key=str):
                print(name, *("" if value is None else value for value in row), sep="\t")
        except sqlite3.Error as error:
            sys.exit(f"{name}: {error}")
        lap(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
