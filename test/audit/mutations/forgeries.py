"""Forgeries that change several columns or lines so that they fit each other. Each is made for one rule."""
from changes import NULL, Change, at, decimal, in_units, moved_day, with_sums

FORGERIES = []


def forgery(log):
    """Registers a function that gives the removed and the added lines of one log; its docstring says what it forges."""
    return lambda make: FORGERIES.append((log, make)) or make


def all_forgeries(ledgers):
    for log, make in FORGERIES:
        ledger = ledgers[log]
        removed, added = make(Lines(ledger))
        yield ledger, with_sums(ledger, Change('several columns', '', make.__doc__, removed, added))


class Lines:
    """The lines of a log by kind and by the texts of their columns."""
    def __init__(self, ledger):
        self.ledger = ledger
        self.end = ledger.lines[-1].number

    def find(self, kind, /, **columns):
        """The first line with these texts; a function decides instead of a text where one is given."""
        return self.all(kind, **columns)[0]

    def all(self, kind, /, **columns):
        names = self.ledger.forms[kind].names
        fits = lambda text, wanted: wanted(text) if callable(wanted) else text == wanted
        return [line for line in self.ledger.of_kind.get(kind, [])
                if all(fits(line.fields[names.index(name)], wanted) for name, wanted in columns.items())]

    def get(self, line, name):
        return line.fields[self.ledger.forms[line.kind].names.index(name)]

    def change(self, line, /, **columns):
        names = self.ledger.forms[line.kind].names
        return line.with_fields({names.index(name): text for name, text in columns.items()})

    def last_import(self):
        """The event of the last import, and its rows, which are in an open month."""
        event = self.all('audit_events', action='ledger.import')[-1]
        return event, self.all('ledger_rows', event_id=self.get(event, 'event_id'))


def changed(line, other):
    return [line], [other]


@forgery('clients')
def policy(lines):
    """the policy of a sale in an open month, which its partner never had"""
    _, rows = lines.last_import()
    return changed(rows[0], lines.change(rows[0], policy_id='unknown'))


@forgery('clients')
def arrangement(lines):
    """the arrangement of one of two sales in an open month"""
    _, rows = lines.last_import()
    return changed(rows[0], lines.change(rows[0], arrangement='connected_account'))


@forgery('clients')
def time_zone(lines):
    """the time zone of a sale, with the beginning of its month in that zone"""
    _, rows = lines.last_import()
    zones = lines.all('month_zones', time_zone=lines.get(rows[0], 'time_zone'))
    again = [at(lines.change(zone, time_zone='America/Toronto'), zone.number + 1) for zone in zones]
    return [rows[0]], [lines.change(rows[0], time_zone='America/Toronto'), *again]


@forgery('clients')
def terms(lines):
    """the terms and the due day of an invoice"""
    line = lines.find('documents', document='invoice', purpose='month', replaces=NULL)
    days = int(lines.get(line, 'terms_days')) + 1
    return changed(line, lines.change(line, terms_days=str(days), due_on=moved_day(lines.get(line, 'due_on'), 1)))


@forgery('clients')
def close_event(lines):
    """the event of a close that closed no month"""
    event = lines.all('audit_events', action='month.close')[-1]
    return [], [at(lines.change(event, event_id='900000', subject='2026-11'), lines.end + 1)]


@forgery('clients')
def acceptance_without_row(lines):
    """the event of an acceptance without a row"""
    event = lines.all('audit_events', action='quote.accept')[-1]
    return [], [at(lines.change(event, event_id='900000', subject='q-900000'), lines.end + 1)]


@forgery('approvals')
def approver(lines):
    """the user who approved, in the decision and in its event, by one who is not an approver"""
    decision = lines.find('approval_decisions', decision='approve')
    event = lines.find('audit_events', event_id=lines.get(decision, 'event_id'))
    approvers = {lines.get(role, 'user_id') for role in lines.all('user_roles', role='approver')}
    others = [lines.get(user, 'user_id') for user in lines.all('users') if user.number < event.number]
    other = [each for each in others if each not in {*approvers, lines.get(decision, 'requested_by')}][-1]
    return [decision, event], [lines.change(decision, decided_by=other), lines.change(event, user_id=other)]



@forgery('clients')
def second_document(lines):
    """the last invoice of a close a second time, with the next number and its own lines"""
    invoices = lines.all('documents', document='invoice', purpose='month', replaces=NULL)
    last = max(lines.all('documents', series=lines.get(invoices[0], 'series')),
               key=lambda line: int(lines.get(line, 'sequence')))
    sequence = int(lines.get(last, 'sequence')) + 1
    again = lines.change(last, document_id='900000', sequence=str(sequence), credit_applied='0',
                         number='%s-%06d' % (lines.get(last, 'series'), sequence))
    own = lines.all('document_lines', document_id=lines.get(last, 'document_id'))
    return [], [at(again, last.number + 1),
                *(at(lines.change(line, document_id='900000'), line.number + 1) for line in own)]


@forgery('clients')
def earlier_event(lines):
    """an event three days before the event before it, in a ledger that is not a sandbox"""
    documents = lines.all('documents')
    event = lines.all('audit_events', action='partner.update')[-1]
    at_time = lines.get(lines.ledger.of_kind['audit_events'][lines.ledger.of_kind['audit_events'].index(event) - 1],
                        'occurred_at')
    return [*documents, event], [*(lines.change(line, sandbox='false') for line in documents),
                                 lines.change(event, occurred_at=moved_day(at_time[:10], -3) + at_time[10:])]


@forgery('approvals')
def act_without_approval(lines):
    """an act without its approval, a day after the setting that gave it to two people"""
    settings = lines.find('audit_events', action='settings.change', details=lambda text: '=approvals.invoice.hold' in text)
    act = lines.find('audit_events', action='invoice.hold')
    occurred = lines.get(settings, 'occurred_at')
    kept = '&'.join(pair for pair in lines.get(act, 'details').split('&') if not pair.startswith('approval.'))
    return [settings, act], [lines.change(settings, occurred_at=moved_day(occurred[:10], -1) + occurred[10:]),
                             lines.change(act, details=kept)]


@forgery('adjustments')
def smaller_sum_before(lines):
    """a sum of earlier adjustments that leaves out what another user did"""
    act = lines.all('audit_events', action='invoice.credit')[1]
    details = lines.get(act, 'details').replace('adjustments.0.before=2.00', 'adjustments.0.before=0.00')
    return changed(act, lines.change(act, details=details))


@forgery('adjustments')
def import_of_other_bytes(lines):
    """an approved import of a file with another hash than that of its request"""
    act = lines.all('audit_events', action='ledger.import')[-1]
    [hash] = [pair for pair in lines.get(act, 'details').split('&') if pair.startswith('sha256.0=')]
    return changed(act, lines.change(act, details=lines.get(act, 'details').replace(hash, 'sha256.0=' + 64 * '0')))


@forgery('history')
def tax_of_reversal(lines):
    """the rate of the tax of reversals, which no rule of tax and no earlier document had"""
    kinds = {(lines.get(line, 'document_id'), lines.get(line, 'position')): lines.get(line, 'kind')
             for line in lines.all('document_lines')}
    values = lambda tax: [pair.split(':')[1] for pair in lines.get(tax, 'line_positions').split('&')]
    tax = [tax for tax in lines.all('document_taxes') if ':' in lines.get(tax, 'line_positions') and
           all(kinds.get((lines.get(tax, 'document_id'), line)) == 'reversal' for line in values(tax))][-1]
    return changed(tax, lines.change(tax, category='outside_scope', rate='0', tax='0', reduced='false', reason='none'))


@forgery('clients')
def import_twice(lines):
    """the last import a second time, with an event of its own"""
    event, rows = lines.last_import()
    again = [at(lines.change(event, event_id='900000'), lines.end + 1)]
    return [], again + [at(lines.change(row, event_id='900000'), lines.end + 2 + place) for place, row in enumerate(rows)]


def added_reversals(lines, **columns):
    """An import of reversals of the last sale, one for each column list, in the month in which the sale was made."""
    event, rows = lines.last_import()
    sale, minus = rows[0], lambda text: '-' + text
    count = len(next(iter(columns.values())))
    money = {name: lines.get(sale, name) for name in ('spot_price', 'partner_cut', 'invoice_amount')}
    totals = {'spotPrice': 'spot_price', 'partnerCut': 'partner_cut', 'invoiceAmount': 'invoice_amount'}
    currency = lines.get(sale, 'currency')
    stated = ['totals.%s.%s=-%s' % (currency, name, decimal(count * in_units(money[column], 2), 2))
              for name, column in totals.items()]
    details = '&'.join(sorted(['accepted:%d' % count, 'totals.%s.rows:%d' % (currency, count), *stated],
                              key=lambda pair: pair.split('=')[0].split(':')[0]))
    made = [at(lines.change(event, event_id='900000', details=details), lines.end + 1)]
    for place in range(count):
        own = {name: texts[place] for name, texts in columns.items()}
        row = lines.change(sale, kind='reversal', reversal_id='r-90000%d' % place, event_id='900000',
                           **{name: minus(text) for name, text in money.items()}, **own)
        made.append(at(row, lines.end + 2 + place))
    return [], made


@forgery('clients')
def reversed_twice(lines):
    """two whole reversals of one sale, in an import of their own"""
    return added_reversals(lines, arrangement=['invoicing', 'invoicing'])


@forgery('clients')
def reversal_of_account(lines):
    """a reversal that is routed by the processor, of a sale that was invoiced"""
    return added_reversals(lines, arrangement=['connected_account'])


@forgery('clients')
def accepted_later(lines):
    """the time of a sale, two days after it was recorded"""
    _, rows = lines.last_import()
    recorded = lines.get(rows[0], 'recorded_at')
    return changed(rows[0], lines.change(rows[0], accepted_at=moved_day(recorded[:10], 2) + recorded[10:]))


@forgery('history')
def country_of_credit(lines):
    """the country of the tax of a credit note against an invoice"""
    notes = {lines.get(line, 'document_id') for line in lines.all('documents', purpose='adjustment')}
    tax = lines.all('document_taxes', document_id=notes.__contains__)[-1]
    return changed(tax, lines.change(tax, country='XX'))


@forgery('history-with-duplicates')
def other_duplicate(lines):
    """the payment that a payment was a duplicate of, by one of another amount"""
    reversal = lines.find('payment_reversals', kind='duplicate')
    amount = lines.get(reversal, 'amount')
    other = lines.find('payments', amount=lambda text: text != amount)
    return changed(reversal, lines.change(reversal, duplicate_of=lines.get(other, 'payment_id')))


@forgery('settlement-files')
def amount_of_settlement_line(lines):
    """the amount of a line of a settlement file whose transaction was reported by the file"""
    reported = lines.find('balance_transactions', reported_by='settlement_file')
    line = lines.find('settlement_lines', settlement_line_id=lines.get(reported, 'id').removeprefix('line:'))
    return changed(line, lines.change(line, amount=decimal(in_units(lines.get(line, 'amount'), 2) + 1, 2)))


@forgery('payments')
def last_century(lines):
    """the days of a payment that was recorded by hand, in 1999"""
    applied = {lines.get(line, 'payment_id') for kind in ('payment_applications', 'payment_assignments', 'payment_reversals')
               for line in lines.all(kind)}
    free = lambda text: text not in applied
    payment = lines.all('payments', source='hand', payment_id=free)[-1]
    return changed(payment, lines.change(payment, received_on='1999-12-31', entry_on='1999-12-31'))


@forgery('history')
def suggestion_of_import(lines):
    """another suggestion, which names the event of an import of rows"""
    suggestion = lines.find('payment_suggestions')
    event, _ = lines.last_import()
    again = lines.change(suggestion, payment_suggestion_id='900000', event_id=lines.get(event, 'event_id'),
                         recorded_at=lines.get(event, 'occurred_at'))
    return [], [at(again, lines.end + 1)]


@forgery('history')
def stated_approvals(lines):
    """an approval rule in the event of a close, which the settings did not have"""
    event = lines.all('audit_events', action='month.close', details=lambda text: 'approval_rules:[]' in text)[-1]
    details = lines.get(event, 'details').replace('approval_rules:[]', 'approval_rules.0=payment.record')
    return changed(event, lines.change(event, details=details))


@forgery('history')
def held_credit(lines):
    """a hold of a credit note, with its event, before its credit was applied"""
    applied = lines.all('credit_applications')[-1]
    event = lines.find('audit_events', event_id=lines.get(applied, 'event_id'))
    note = lines.find('documents', document_id=lines.get(applied, 'credit_note_id'))
    asked = at(lines.change(event, event_id='900000', action='invoice.hold', subject=lines.get(note, 'number'),
                            details='reason=odd', user_id=NULL), event.number - 1)
    hold = lines.change(lines.find('holds'), hold_id='900000', document_id=lines.get(note, 'document_id'), follows=NULL,
                        reason='odd', held_at=lines.get(event, 'occurred_at'), event_id='900000')
    return [], [asked, at(hold, applied.number - 1)]
