"""Writes the samples of bank files and expected.tsv, the lines and sums of each statement.

The files have the shapes in which banks write their statements; all names, accounts and amounts are invented. The sums
are computed here in integers, from the transactions before they are written, and never by the program's own readers.

    python3 test/payments/samples/make.py
"""

import random
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ["Aldern Events", "Brisa Tickets", "Corvo & Filhos", "Dunmore Arena", "Ebbe Reisen", "Fjord Billetter",
         "Grova Teater", "Hollin Travel", "Istra Kongres", "Jorvik Stages"]
ACCENTED = ["Müller Bühnen", "Théâtre Élan", "Łódź Bilety", "Åkerö Scen", "Niño Viajes"]
expected = []


class Tx:
    """A transaction: minor units with a sign, its day of October 2026, the other party and what the bank writes."""

    def __init__(self, units, day, name, text, ref, e2e, account, reversal=False):
        self.units, self.day, self.name, self.text = units, day, name, text
        self.ref, self.e2e, self.account, self.reversal = ref, e2e, account, reversal


def transactions(seed, count=4, step=1, names=NAMES, day=1):
    rng = random.Random(seed)
    made = []
    for index in range(count):
        units = rng.randrange(101, 900000) * step
        made.append(Tx(units if rng.random() < 0.7 else -units, day + index // 2, rng.choice(names),
                       f"INV-2026-{rng.randrange(1, 900):06d} {rng.choice(['thanks', 'July', 'order 7', 'fees'])}",
                       f"{seed[:4].upper()}{rng.randrange(10**7):07d}", f"E2E{rng.randrange(10**6):06d}",
                       f"XX{rng.randrange(10**2):02d}TEST{rng.randrange(10**10):010d}"))
    return made


def decimal(units, digits=2, point="."):
    sign, units = ("-" if units < 0 else ""), abs(units)
    if digits == 0:
        return f"{sign}{units}"
    return f"{sign}{units // 10**digits}{point}{units % 10**digits:0{digits}d}"


def expect(file, form, account, currency, txs, digits=2, only=""):
    """One line of expected.tsv."""
    credits = sum(each.units for each in txs if each.units > 0)
    debits = -sum(each.units for each in txs if each.units < 0)
    count = sum(1 for each in txs if each.units != 0)
    expected.append([file, form, account, currency, str(count), decimal(credits, digits), decimal(debits, digits), only])


def write(file, text, encoding="utf-8", eol="\n"):
    (HERE / file).write_bytes(text.replace("\n", eol).encode(encoding))


# --- MT940 and MT942 ---

def wrap(text, width):
    return "\n".join(text[at:at + width] for at in range(0, len(text), width))


def text86(style, each):
    n, t, a, e = each.name, each.text, each.account, each.e2e
    if style == "german":
        return wrap(f"166?00GUTSCHRIFT?109310?20EREF+{e}?21SVWZ+{t[:22]}?22{t[22:]}?30TESTDEFFXXX?31{a}?32{n[:27]}", 65)
    if style == "german plain":
        return wrap(f"051?00UEBERWEISUNG?109075?20{t[:27]}?21{t[27:]}?30TESTDEFF?31{a}?32{n}?34000", 65)
    if style == "austrian":
        return wrap(f"166<00SEPA<20{t[:27]}<21{t[27:]}<31{a}<32{n}", 65)
    if style == "polish":
        return wrap(f"020~00PRZELEW~20{t[:27]}~21{t[27:]}~29{a}~30TEST~31{a}~32{n}~34020", 65)
    if style == "triodos":
        return wrap(f"000>100{a}>20{t[:27]}>21{t[27:]}>31{a}>32{n}", 65)
    if style == "ing":
        return wrap(f"/EREF/{e}//CNTP/{a}/TESTNL2A/{n}/AMSTERDAM//REMI/USTD//{t}/", 65)
    if style == "abn":
        return wrap(f"/TRTP/SEPA OVERBOEKING/IBAN/{a}/BIC/TESTNL2A/NAME/{n}/REMI/{t}/EREF/{e}", 65)
    if style == "rabo":
        return wrap(f"/EREF/{e}/ORDP//NAME/{n}/REMI/{t}/ISDT/2026-10-01", 65)
    if style == "lines":
        return f"{n}\n{t}\nREF {e}"
    if style == "one":
        return f"{t} {n} {a}"
    return ""


def mark(each, style):
    if each.reversal:
        return "RD" if each.units > 0 else "RC"
    return ("C" if each.units > 0 else "D") + style.get("funds", "")


def mt940(bank, account, currency="EUR", text="lines", digits=2, count=4, written=None, pages=1, statements=1, eol="\r\n",
          encoding="utf-8", envelope=False, preamble="", end="-", interim=False, names=NAMES, step=1, reversal=False,
          kind="NTRF", zero=False, padded=False, entry=True, **style):
    file = f"{bank}.{'942' if interim else '940'}"
    out, day = preamble, 1
    balance = random.Random(bank).randrange(10**6, 10**8) * step
    for number in range(1, statements + 1):
        txs = transactions(f"{bank}{number}", count, step, names, day)
        if reversal:
            txs[0].reversal = txs[1].reversal = True
        per = -(-len(txs) // pages)
        for page in range(1, pages + 1):
            those = txs[(page - 1) * per:page * per]
            first, last = ("F" if page == 1 else "M"), ("F" if page == pages else "M")
            body = f":20:STMT{number}\n:25:{written or account}\n:28C:{number:05d}/{page:03d}\n"
            amount = lambda units: decimal(abs(units), digits, ",") + ("," if digits == 0 else "")
            state = lambda units: f"{'D' if units < 0 else 'C'}2610{day:02d}{currency}{amount(units)}"
            if interim:
                body += f":34F:{currency}0,\n:13D:2610071200+0200\n"
            else:
                body += f":60{first}:{state(balance)}\n"
            for each in those:
                value = amount(each.units)
                if padded:
                    value = value.rjust(15, "0")
                bank_ref = f"//{each.ref}" if style.get("refs", True) else ""
                booked = f"10{each.day:02d}" if entry else ""
                body += f":61:2610{each.day:02d}{booked}{mark(each, style)}{value}{kind}NONREF{bank_ref}\n"
                if style.get("supplementary"):
                    body += f"/OCMT/USD{value}/EXCH/1,0\n"
                if text:
                    body += f":86:{text86(text, each)}\n"
                balance += each.units
            if zero:
                body += f":61:261001C0,00NMSCNONREF\n:86:REMARK OF THE BANK\n"
            if interim:
                for tag, those_of in (("D", [x for x in those if x.units < 0]), ("C", [x for x in those if x.units > 0])):
                    body += f":90{tag}:{len(those_of)}{currency}{amount(sum(x.units for x in those_of))}\n"
            else:
                body += f":62{last}:{state(balance)}\n"
                if style.get("available"):
                    body += f":64:{state(balance)}\n:86:NUMBER OF ITEMS {len(those)}\n"
            if envelope:
                body = f"{{1:F01TESTXXXX0000000000}}{{2:{'I942' if interim else 'I940'}TESTXXXXN}}{{4:\n{body}-}}\n"
            else:
                body += f"{end}\n" if end else ""
            out += body
            expect(file, "mt942" if interim else "mt940", account, currency, those, digits, "interim" if interim else "")
        day += 2
    write(file, out, encoding, eol)


DE, AT, NL, PL, CH = "DE00TEST0000000001", "AT00TEST0000000002", "NL00TEST0000000003", "PL00TEST0000000004", "CH00TEST05"
mt940("abn-amro", "000000301", text="abn", preamble="ABNANL2A\n940\nABNANL2A\n")
mt940("ing-nl", NL, written=f"{NL}EUR", text="ing", envelope=True, statements=2, available=True)
mt940("rabobank", NL, written=f"{NL} EUR", text="rabo", kind="N541", refs=False)
mt940("knab", NL, text="one", end="-}")
mt940("asn", NL, text="lines", refs=False)
mt940("sns", NL, text="lines", kind="NOVB", refs=False)
mt940("triodos", "0000000305", text="triodos", padded=True, refs=False)
mt940("bunq", NL, text="abn", statements=3)
mt940("commerzbank", "00000000/0000000101", text="german", statements=2)
mt940("deutsche-bank", "00000000/0000000102", text="german", funds="R")
mt940("sparkasse", "00000000/0000000103", text="german", encoding="latin-1", names=ACCENTED[:2])
mt940("volksbank", "00000000/0000000104", text="german plain", encoding="latin-1", funds="R")
mt940("lbbw", "00000000/0000000105", text="german plain", pages=2)
mt940("olb", "00000000/0000000106", text="german", eol="\n")
mt940("hypovereinsbank", DE, text="german", reversal=True)
mt940("postbank", DE, text="german plain", padded=True)
mt940("dkb", DE, text="german", zero=True)
mt940("postfinance", CH, currency="CHF", text="one", kind="NGIR")
mt940("ubs", CH, currency="CHF", text="lines", envelope=True, funds="F")
mt940("credit-suisse", CH, currency="CHF", text="lines", supplementary=True)
mt940("zkb", CH, currency="CHF", text="one", available=True)
mt940("raiffeisen-at", AT, text="austrian")
mt940("erste", AT, text="austrian", pages=2)
mt940("bawag", AT, text="german plain", statements=2)
mt940("mbank", PL, currency="PLN", text="polish", names=ACCENTED)
mt940("pko", PL, currency="PLN", text="polish", kind="S034")
mt940("santander-pl", PL, currency="PLN", text="polish", refs=False)
mt940("csob", "CZ00TEST06", currency="CZK", text="lines", encoding="cp1252")
mt940("citi", "0000000401", currency="USD", text="one", reversal=True, funds="D", envelope=True)
mt940("hsbc-hk", "0000000402", currency="HKD", text="lines", entry=False)
mt940("barclays", "00000000000403", currency="GBP", text="lines", padded=True, end="-")
mt940("jpmorgan", "0000000404", currency="USD", text="one", supplementary=True, kind="FTRF")
mt940("nordea", "FI00TEST07", text="lines", statements=2)
mt940("danske", "DK00TEST08", currency="DKK", text="lines")
mt940("seb", "SE00TEST09", currency="SEK", text="", refs=True)
mt940("bnp-paribas", "FR00TEST10", text="lines", names=ACCENTED[:2], encoding="latin-1")
mt940("mizuho", "0000000405", currency="JPY", text="one", digits=0)
mt940("dbs", "0000000406", currency="SGD", text="one", end="")
mt940("commerzbank", DE, text="german", interim=True)
mt940("ing-nl", NL, text="ing", interim=True, envelope=True)
mt940("ubs", CH, currency="CHF", text="lines", interim=True)


# --- OFX ---

def ofx(bank, account, currency="USD", version=1, closed=False, card=False, digits=2, count=4, charset="1252",
        encoding="cp1252", names=NAMES, point=".", plus=False, dates="{}120000[-5:EST]", types=True, oneline=False, extra="",
        statements=1, header=True, zero=False):
    file = f"{bank}.{'qfx' if card else 'qbo' if extra else 'ofx'}"
    lines = []
    leaf = lambda name, value: lines.append(f"<{name}>{value}</{name}>" if closed or version == 2 else f"<{name}>{value}")
    open_, close = (lambda name: lines.append(f"<{name}>")), (lambda name: lines.append(f"</{name}>"))
    open_("OFX"); open_("SIGNONMSGSRSV1"); open_("SONRS"); open_("STATUS")
    leaf("CODE", 0); leaf("SEVERITY", "INFO"); close("STATUS"); leaf("DTSERVER", "20261007"); leaf("LANGUAGE", "ENG")
    if extra:
        leaf("INTU.BID", extra)
    close("SONRS"); close("SIGNONMSGSRSV1")
    group, answer, statement, source = (("CREDITCARDMSGSRSV1", "CCSTMTTRNRS", "CCSTMTRS", "CCACCTFROM") if card else
                                        ("BANKMSGSRSV1", "STMTTRNRS", "STMTRS", "BANKACCTFROM"))
    open_(group)
    for number in range(1, statements + 1):
        txs = transactions(f"{bank}{number}", count, names=names)
        own = account if statements == 1 else f"{account}{number}"
        open_(answer); leaf("TRNUID", number); open_(statement); leaf("CURDEF", currency); open_(source)
        if not card:
            leaf("BANKID", "000000000")
        leaf("ACCTID", own)
        if not card:
            leaf("ACCTTYPE", "CHECKING")
        close(source); open_("BANKTRANLIST"); leaf("DTSTART", "20261001"); leaf("DTEND", "20261007")
        for each in txs:
            open_("STMTTRN")
            leaf("TRNTYPE", ("CREDIT" if each.units > 0 else "DEBIT") if types else "OTHER")
            leaf("DTPOSTED", dates.format(f"202610{each.day:02d}"))
            leaf("TRNAMT", ("+" if plus and each.units > 0 else "") + decimal(each.units, digits, point))
            leaf("FITID", each.ref)
            leaf("NAME", each.name.replace("&", "&amp;"))
            leaf("MEMO", each.text)
            close("STMTTRN")
        if zero:
            open_("STMTTRN"); leaf("TRNTYPE", "OTHER"); leaf("DTPOSTED", "20261001"); leaf("TRNAMT", "0.00")
            leaf("FITID", "REMARK"); close("STMTTRN")
        close("BANKTRANLIST"); open_("LEDGERBAL"); leaf("BALAMT", "1000"); leaf("DTASOF", "20261007")
        close("LEDGERBAL"); close(statement); close(answer)
        expect(file, "ofx", own, currency, txs, digits)
    close(group); close("OFX")
    head = (f"OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nSECURITY:NONE\nENCODING:USASCII\nCHARSET:{charset}\n"
            "COMPRESSION:NONE\nOLDFILEUID:NONE\nNEWFILEUID:NONE\n\n") if version == 1 else (
            '<?xml version="1.0" encoding="UTF-8"?>\n<?OFX OFXHEADER="200" VERSION="211" SECURITY="NONE"?>\n')
    write(file, (head if header else "") + ("" if oneline else "\n").join(lines) + "\n", encoding, "\r\n")


ofx("anz", "0100000001", "AUD")
ofx("commonwealth", "0100000002", "AUD", closed=True, dates="{}")
ofx("westpac", "0100000003", "AUD", version=2, encoding="utf-8", plus=True)
ofx("suncorp", "0100000004", "AUD", types=False)
ofx("chase", "0100000005", oneline=True, extra="10898")
ofx("bank-of-america", "0100000006", version=2, encoding="utf-8")
ofx("wells-fargo", "0100000007", extra="3000", dates="{}120000.000[-8:PST]")
ofx("citi", "0100000008", statements=2)
ofx("american-express", "0100000009", card=True, version=2, encoding="utf-8")
ofx("capital-one", "0100000010", card=True)
ofx("schwab", "0100000011", extra="101", header=True, oneline=True)
ofx("usaa", "0100000012", zero=True)
ofx("td", "0100000013", "CAD", plus=True)
ofx("rbc", "0100000014", "CAD", extra="00003", dates="{}020000[-5]")
ofx("scotiabank", "0100000015", "CAD", closed=True)
ofx("itau", "0100000016", "BRL", dates="{}100000[-03:EST]", point=",")
ofx("bradesco", "0100000017", "BRL", names=ACCENTED[:2])
ofx("nubank", "0100000018", "BRL", closed=True, charset="NONE", encoding="utf-8", names=ACCENTED)
ofx("banco-do-brasil", "0100000019", "BRL", charset="1252", types=False)
ofx("credit-agricole", "0100000020", "EUR", names=ACCENTED[:2], dates="{}")
ofx("boursobank", "0100000021", "EUR", header=False, dates="{}")
ofx("swedbank", "0100000022", "SEK", charset="8859-1", encoding="latin-1", names=["Åkerö Scen"])
ofx("sumitomo", "0100000023", "JPY", digits=0)
ofx("mercantil", "0100000024", "USD", version=2, encoding="utf-8", names=ACCENTED)


# --- camt ---

def camt(bank, account, currency="EUR", message="053", version="02", count=4, batch="", balances=True, status="plain",
         dates="Dt", names=NAMES, encoding="utf-8", prefix="", envelope=False, iban=True, summary=False, digits=2, other="",
         pretty=False, refs=True, statements=1, amount="{}", exchange=False):
    file = f"{bank}.{message}.xml"
    element, part, only = {"053": ("BkToCstmrStmt", "Stmt", ""), "052": ("BkToCstmrAcctRpt", "Rpt", "interim"),
                           "054": ("BkToCstmrDbtCdtNtfctn", "Ntfctn", "details")}[message]
    money = lambda units, tag="Amt": f'<{tag} Ccy="{currency}">{amount.format(decimal(abs(units), digits))}</{tag}>'
    sign = lambda units: f"<CdtDbtInd>{'CRDT' if units >= 0 else 'DBIT'}</CdtDbtInd>"
    on = lambda day: f"<Dt>2026-10-{day:02d}</Dt>" if dates == "Dt" else f"<DtTm>2026-10-{day:02d}T09:00:00+02:00</DtTm>"
    party = (lambda name: f"<Pty><Nm>{name}</Nm></Pty>") if version >= "08" else (lambda name: f"<Nm>{name}</Nm>")
    escape = lambda text: text.replace("&", "&amp;")
    xml = ""
    for number in range(1, statements + 1):
        txs = transactions(f"{bank}{message}{number}", count, names=names, step=1)
        own = account if statements == 1 else f"{account}{number}"
        start = random.Random(bank).randrange(10**6, 10**8)

        def details(each, with_amount=False):
            role = "Dbtr" if each.units > 0 else "Cdtr"
            more = (f"<AmtDtls><InstdAmt><Amt Ccy=\"USD\">{decimal(abs(each.units))}</Amt><CcyXchg><SrcCcy>USD</SrcCcy>"
                    f"<TrgtCcy>{currency}</TrgtCcy><XchgRate>1.0850</XchgRate></CcyXchg></InstdAmt></AmtDtls>" if exchange else "")
            own_ref = f"<AcctSvcrRef>{each.ref}</AcctSvcrRef>" if refs else ""
            part_amount = money(each.units) + (sign(each.units) if version >= "04" else "") if with_amount else ""
            return (f"<TxDtls><Refs>{own_ref}<EndToEndId>{each.e2e}</EndToEndId><MndtId>M-{each.day}</MndtId></Refs>{part_amount}{more}"
                    f"<RltdPties><{role}>{party(escape(each.name))}</{role}><{role}Acct><Id><IBAN>{each.account}</IBAN></Id>"
                    f"</{role}Acct></RltdPties><RmtInf><Ustrd>{each.text}</Ustrd></RmtInf></TxDtls>")

        def entry(units, day, ref, inner):
            state = {"plain": "<Sts>BOOK</Sts>", "code": "<Sts><Cd>BOOK</Cd></Sts>", "": ""}[status]
            booked = f"<BookgDt>{on(day)}</BookgDt><ValDt>{on(day)}</ValDt>" if dates else ""
            ref = f"<AcctSvcrRef>{ref}</AcctSvcrRef>" if refs else ""
            return (f"<Ntry>{money(units)}{sign(units)}{state}{booked}{ref}<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>"
                    f"{'RCDT' if units > 0 else 'ICDT'}</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>{inner}</Ntry>")

        if batch == "mixed":
            txs[0].units, txs[1].units = abs(txs[0].units) + abs(txs[1].units), -abs(txs[1].units)
        elif batch:
            for each in txs[:2]:
                each.units = abs(each.units)
        entries = ""
        if batch:
            total = txs[0].units + txs[1].units
            if batch == "two":
                inner = "".join(f"<NtryDtls><Btch><NbOfTxs>1</NbOfTxs>{money(x.units, 'TtlAmt')}</Btch>{details(x, True)}</NtryDtls>"
                                for x in txs[:2])
            else:
                inner = f"<NtryDtls><Btch><NbOfTxs>2</NbOfTxs>{money(total, 'TtlAmt')}</Btch>{''.join(details(x, True) for x in txs[:2])}</NtryDtls>"
            entries += entry(total, txs[0].day, f"{bank[:4].upper()}BATCH", inner)
        for each in txs[2 if batch else 0:]:
            entries += entry(each.units, each.day, each.ref, f"<NtryDtls>{details(each)}</NtryDtls>")
        closing = start + sum(each.units for each in txs)
        balance = lambda code, units, day: (f"<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp>{money(units)}{sign(units)}"
                                            f"<Dt><Dt>2026-10-{day:02d}</Dt></Dt></Bal>")
        head = balance("OPBD", start, 1) + balance("CLBD", closing, 7) if balances else ""
        if summary:
            gross = sum(abs(x.units) for x in txs) if not batch else sum(abs(x.units) for x in txs[2:]) + abs(total)
            head += (f"<TxsSummry><TtlNtries><NbOfNtries>{len(txs) - (1 if batch else 0)}</NbOfNtries>"
                     f"<Sum>{decimal(gross, digits)}</Sum></TtlNtries></TxsSummry>")
        ident = f"<IBAN>{own}</IBAN>" if iban else f"<Othr><Id>{own}</Id></Othr>"
        xml += (f"<{part}><Id>{bank}-{number}</Id><CreDtTm>2026-10-07T20:00:00</CreDtTm><Acct><Id>{ident}</Id>"
                f"<Ccy>{currency}</Ccy></Acct>{head}{entries}</{part}>")
        counted = txs
        expect(file, f"camt{message}", own, currency, counted, digits, only)
    body = f"<{element}><GrpHdr><MsgId>{bank}</MsgId><CreDtTm>2026-10-07T20:00:00</CreDtTm></GrpHdr>{xml}</{element}>"
    body = f'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.{message}.001.{version}">{body}</Document>'
    if prefix:
        body = body.replace("<", "\0").replace("\0/", f"</{prefix}:").replace("\0", f"<{prefix}:").replace("xmlns=", f"xmlns:{prefix}=")
    if envelope:
        body = ('<BizMsgEnvlp xmlns="urn:bank"><AppHdr xmlns="urn:iso:std:iso:20022:tech:xsd:head.001.001.01"><Fr/></AppHdr>'
                f"{body}</BizMsgEnvlp>")
    if pretty:
        body = body.replace("><", ">\n<")
    declared = "UTF-16" if encoding == "utf-16" else encoding.upper().replace("LATIN-1", "ISO-8859-1").replace("CP1252", "windows-1252")
    write(file, f'<?xml version="1.0" encoding="{declared}"?>\n{body}\n', encoding)


camt("deutsche-bank", DE, version="02", status="plain", pretty=True)
camt("commerzbank", DE, version="08", status="code", batch="sum")
camt("ubs", CH, "CHF", version="04", batch="sum", summary=True)
camt("postfinance", CH, "CHF", version="08", status="code", batch="two")
camt("zkb", CH, "CHF", version="08", status="code", batch="mixed")
camt("raiffeisen-ch", CH, "CHF", version="04", batch="mixed", summary=True)
camt("nordea", "FI00TEST07", version="02", pretty=True, names=ACCENTED)
camt("seb", "SE00TEST09", "SEK", version="02", iban=False)
camt("swedbank", "SE00TEST11", "SEK", version="02", encoding="latin-1", names=["Åkerö Scen"])
camt("ing-nl", NL, version="02", refs=False)
camt("rabobank", NL, version="02", batch="sum", refs=False)
camt("abn-amro", NL, version="02", dates="DtTm")
camt("kbc", "BE00TEST12", version="02", prefix="n1", pretty=True)
camt("bnp-fortis", "BE00TEST13", version="08", status="code", statements=2)
camt("unicredit", "IT00TEST14", version="02", summary=True)
camt("intesa", "IT00TEST15", version="04", envelope=True, pretty=True)
camt("bbva", "ES00TEST16", version="02", encoding="cp1252", names=ACCENTED[:2])
camt("santander", "ES00TEST17", version="08", status="code", exchange=True)
camt("erste", AT, version="02", encoding="utf-16")
camt("bawag", AT, version="08", status="code", envelope=True)
camt("lhv", "EE00TEST18", version="02", batch="sum", pretty=True)
camt("central-bank-lt", "LT00TEST19", version="08", status="", summary=True)
camt("revolut", "LT00TEST20", version="08", status="", balances=False, dates="")
camt("barclays", "GB00TEST21", "GBP", version="02", iban=False, amount="+{}")
camt("danske", "DK00TEST08", "DKK", version="13", status="code", names=ACCENTED)
for name, own, ccy, kind in (("ubs", CH, "CHF", "04"), ("commerzbank", DE, "EUR", "08"), ("ing-nl", NL, "EUR", "02"),
                             ("central-bank-lt", "LT00TEST19", "EUR", "08")):
    camt(name, own, ccy, "052", kind, status="code" if kind == "08" else "plain", balances=False)
    camt(name, own, ccy, "054", kind, status="code" if kind == "08" else "plain", balances=False, batch="sum")


# --- BAI2 ---

def bai2(bank, account, currency="USD", count=4, style="plain", blocked=False, comma=False, totals=True, blank=False,
         partial=False, width=80, encoding="utf-8", names=NAMES, value=False, accounts=1, status=1, eol="\n", balances=True):
    file = f"{bank}.bai"
    records, groups = [], []
    file_sum = 0
    records.append(f"01,{bank.upper()},OURS,261007,0600,1,{width},,2/")
    group_sum, group_start = 0, len(records)
    records.append(f"02,OURS,{bank.upper()},{status},261007,,{currency},2/")
    for number in range(accounts):
        txs = transactions(f"{bank}{number}", count, names=names, day=7)
        for each in txs:
            each.day = 7
        own = f"{account}{number}" if accounts > 1 else account
        start = len(records)
        credits = sum(x.units for x in txs if x.units > 0)
        debits = -sum(x.units for x in txs if x.units < 0)
        opening = random.Random(bank).randrange(10**6, 10**8)
        more = (7000 if partial else 0)
        summary = []
        if balances:
            summary += [("010", opening), ("015", opening + credits + more - debits)]
        if totals:
            summary += [("100", credits + more), ("400", debits)]
        control = sum(units for _, units in summary)
        fields = [f"{kind},{units},{',' if kind in ('010', '015') else ','}" for kind, units in summary]
        if comma and len(fields) > 2:
            records.append(f"03,{own},{currency},{','.join(fields[:2])},/")
            records.append(f"88,{','.join(fields[2:])}/")
        else:
            records.append(f"03,{own},{currency},{','.join(fields)}/" if fields else f"03,{own},{currency},,,,/")
        for each in txs:
            kind = {"ach": "142" if each.units > 0 else "451", "wire": "195" if each.units > 0 else "495"}.get(
                style, "165" if each.units > 0 else "455")
            funds = "V,261008,," if value else "Z,"
            text = {"ach": f"ORIG CO NAME:{each.name.upper()} ORIG ID:{each.e2e} DESC:PAY TRN:{each.text}",
                    "wire": f"ORIG={each.name.upper()} OBI={each.text}",
                    "tags": f"DBNM: {each.name}"}.get(style, f"{each.name} {each.text}")
            lead = f"16,{kind},{abs(each.units)},{funds}{each.ref},{each.e2e},"
            if style == "tags":
                records += [lead + text, f"88,REMI: {each.text}", f"88,EREF: {each.e2e}"]
            elif len(lead + text) > width:
                cut = width - len(lead)
                records += [lead + text[:cut], f"88,{text[cut:]}"]
            else:
                records.append(lead + text + "/")
            control += abs(each.units)
        shown = "" if blank else control
        records.append(f"49,{shown},{len(records) - start + 1}/")
        group_sum += control
        expect(file, "bai2", own, currency, txs)
    records.append(f"98,{'' if blank else group_sum},{accounts},{len(records) - group_start + 1}/")
    file_sum += group_sum
    records.append(f"99,{'' if blank else file_sum},1,{len(records) + 1}/")
    if blocked:
        text = "".join(each if each.endswith("/") else f"{each}/" for each in records)
    else:
        text = "\n".join(records) + "\n"
    write(file, text, encoding, eol)


bai2("chase", "000000501", style="ach", width=120)
bai2("bank-of-america", "000000502", style="wire")
bai2("wells-fargo", "000000503", style="wire", accounts=3)
bai2("citi", "000000504", style="plain", value=True)
bai2("svb", "000000505", comma=True)
bai2("natwest", "000000506", "GBP", style="plain", balances=False, totals=False)
bai2("pnc", "000000507", style="ach", eol="\r\n", width=76)
bai2("us-bank", "000000508", blank=True)
bai2("td", "000000509", "CAD", blocked=True, width=400)
bai2("rbc", "000000510", "CAD", blocked=True, accounts=2, width=400)
bai2("goldman-sachs", "000000511", style="tags")
bai2("fifth-third", "000000512", partial=True)
bai2("keybank", "000000513", encoding="latin-1", names=["Müller Bühnen"])
bai2("truist", "000000514", encoding="utf-8-sig", names=["Théâtre Élan"])
bai2("regions", "000000515", status=3, balances=False)
bai2("huntington", "000000516", style="ach", accounts=2, value=True)


# --- CSV ---

def csv(bank, columns, map_text="", account="", currency="USD", delimiter=",", point=".", date="%Y-%m-%d", encoding="utf-8",
        before="", after="", header=True, count=5, newest=False, names=NAMES, digits=2, shuffle=False):
    """`columns` are pairs of a heading and a function of the transaction and its balance."""
    file = f"{bank}.csv"
    txs = transactions(bank, count, names=names)
    balance, rows = 1000000, []
    for each in txs:
        balance += each.units
        each.balance = balance
        rows.append(each)
    if shuffle:
        rows = [rows[1], rows[0], *rows[2:]]
    if newest:
        rows.reverse()
    day = lambda each: (f"{each.day:02d}", "10", "2026")
    fill = lambda each: (date.replace("%d", day(each)[0]).replace("%m", "10").replace("%Y", "2026").replace("%y", "26"))
    quote = lambda cell: f'"{cell}"' if delimiter in cell or '"' in cell else cell
    out = before
    if header:
        out += delimiter.join(quote(name) for name, _ in columns) + "\n"
    for each in rows:
        out += delimiter.join(quote(value(each, fill(each), point)) for _, value in columns) + "\n"
    expect(file, "csv", account, currency, txs, digits)
    expected[-1].append(map_text)
    write(file, out + after, encoding)


day = lambda t, d, p: d
name = lambda t, d, p: t.name
memo = lambda t, d, p: t.text
none = lambda t, d, p: ""
signed = lambda t, d, p: decimal(t.units, 2, p)
unsigned = lambda t, d, p: decimal(abs(t.units), 2, p)
credit = lambda t, d, p: decimal(t.units, 2, p) if t.units > 0 else ""
debit = lambda t, d, p: decimal(-t.units, 2, p) if t.units < 0 else ""
running = lambda t, d, p: decimal(t.balance, 2, p)
other = lambda t, d, p: t.account
ref = lambda t, d, p: t.ref
is_ = lambda *values: lambda t, d, p: values[0] if t.units > 0 else values[-1]
US_ACCOUNT = "000000601"
csv("chase", [("Details", is_("CREDIT", "DEBIT")), ("Posting Date", day), ("Description", memo), ("Amount", signed),
              ("Type", none), ("Balance", running), ("Check or Slip #", none)], f"chase: account={US_ACCOUNT}", US_ACCOUNT,
    date="%m/%d/%Y", newest=True)
csv("bank-of-america", [("Date", day), ("Description", memo), ("Amount", signed), ("Running Bal.", running)],
    f"bank-of-america: account={US_ACCOUNT}", US_ACCOUNT, date="%m/%d/%Y",
    before="Description,,Summary Amt.\nBeginning balance,,1\nTotal credits,,1\nTotal debits,,1\nEnding balance,,1\n\n")
csv("wells-fargo", [("1", day), ("2", signed), ("3", lambda *_: "*"), ("4", none), ("5", memo)],
    f"wells-fargo: account={US_ACCOUNT}", US_ACCOUNT, date="%m/%d/%Y", header=False)
csv("capital-one", [("Account Number", lambda *_: "0602"), ("Transaction Description", memo), ("Transaction Date", day),
                    ("Transaction Type", is_("Credit", "Debit")), ("Transaction Amount", unsigned), ("Balance", running)],
    "", "0602", date="%m/%d/%y", newest=True)
csv("mercury", [("Date (UTC)", day), ("Description", name), ("Amount", signed), ("Status", lambda *_: "Sent"),
                ("Bank Description", memo), ("Reference", none), ("Note", none)], f"mercury: account={US_ACCOUNT}", US_ACCOUNT,
    date="%m-%d-%Y", after="10-07-2026,Waiting,1.00,Pending,x,,\n")
csv("schwab", [("Date", day), ("Type", none), ("Description", memo), ("Withdrawal", debit), ("Deposit", credit),
               ("RunningBalance", running)],
    f": date=Date; text=Description; debit=Withdrawal; credit=Deposit; balance=RunningBalance; account={US_ACCOUNT}; date_format=MM/dd/yyyy",
    US_ACCOUNT, date="%m/%d/%Y", shuffle=True)
csv("n26", [("Booking Date", day), ("Value Date", day), ("Partner Name", name), ("Partner Iban", other), ("Type", none),
            ("Payment Reference", memo), ("Account Name", none), ("Amount (EUR)", signed)], f"n26: account={DE}", DE, "EUR")
csv("ing-nl", [("Datum", day), ("Naam / Omschrijving", name), ("Rekening", lambda *_: NL), ("Tegenrekening", other), ("Code", none),
               ("Af Bij", is_("Bij", "Af")), ("Bedrag (EUR)", unsigned), ("Mutatiesoort", none), ("Mededelingen", memo)],
    "", NL, "EUR", ";", ",", "%Y%m%d", newest=True)
csv("rabobank", [("IBAN/BBAN", lambda *_: NL), ("Munt", lambda *_: "EUR"), ("BIC", none), ("Volgnr", ref), ("Datum", day),
                 ("Rentedatum", day), ("Bedrag", lambda t, d, p: ("+" if t.units > 0 else "") + decimal(t.units, 2, p)), ("Saldo na trn", running), ("Tegenrekening IBAN/BBAN", other), ("Naam tegenpartij", name),
                 ("Code", none), ("Betalingskenmerk", none), ("Omschrijving-1", memo), ("Omschrijving-2", none), ("Omschrijving-3", none),
                 ("Reden retour", none)], "", NL, "EUR", ",", ",", encoding="cp1252", names=ACCENTED[:2])
csv("commerzbank", [("Buchungstag", day), ("Wertstellung", day), ("Umsatzart", none), ("Buchungstext", memo), ("Betrag", signed),
                    ("Währung", lambda *_: "EUR"), ("IBAN Auftraggeberkonto", lambda *_: DE)], "", DE, "EUR", ";", ",", "%d.%m.%Y")
csv("sparkasse", [("Auftragskonto", lambda *_: DE), ("Buchungstag", day), ("Valutadatum", day), ("Buchungstext", none),
                  ("Verwendungszweck", memo), ("Kundenreferenz (End-to-End)", lambda t, d, p: t.e2e),
                  ("Beguenstigter/Zahlungspflichtiger", name), ("Kontonummer/IBAN", other), ("Betrag", signed),
                  ("Waehrung", lambda *_: "EUR"), ("Info", lambda *_: "Umsatz gebucht")], "", DE, "EUR", ";", ",", "%d.%m.%y",
    "cp1252", names=ACCENTED[:2])
csv("dkb", [("Buchungsdatum", day), ("Wertstellung", day), ("Status", lambda *_: "Gebucht"), ("Zahlungspflichtige*r", name),
            ("Verwendungszweck", memo), ("IBAN", other), ("Betrag (€)", signed), ("Kundenreferenz", none)], f"dkb: account={DE}", DE,
    "EUR", ";", ",", "%d.%m.%y", before='"Girokonto";"0"\n\n"Kontostand";"1"\n\n')
csv("monzo", [("Transaction ID", ref), ("Date", day), ("Type", none), ("Name", name), ("Amount", signed), ("Currency", lambda *_: "GBP"),
              ("Notes and #tags", memo), ("Description", none)], "monzo: account=0603", "0603", "GBP", date="%d/%m/%Y")
csv("starling", [("Date", day), ("Counter Party", name), ("Reference", memo), ("Type", none), ("Amount (GBP)", signed),
                 ("Balance (GBP)", running), ("Notes", none)], "starling: account=0604", "0604", "GBP", date="%d/%m/%Y")
csv("barclays", [("Number", none), ("Date", day), ("Account", lambda *_: "00-00-00 0605"), ("Amount", signed), ("Subcategory", none),
                 ("Memo", memo)], "", "00-00-000605", "GBP", date="%d/%m/%Y")
csv("lloyds", [("Transaction Date", day), ("Transaction Type", none), ("Account Number", lambda *_: "0606"),
               ("Transaction Description", memo), ("Debit Amount", debit), ("Credit Amount", credit), ("Balance", running)], "",
    "0606", "GBP", date="%d/%m/%Y", newest=True)
csv("wise", [("TransferWise ID", ref), ("Date", day), ("Amount", signed), ("Currency", lambda *_: "USD"), ("Description", none),
             ("Payment Reference", memo), ("Running Balance", running), ("Payer Name", name)], "wise: account=0607", "0607",
    date="%d-%m-%Y", newest=True)
csv("raiffeisen-cz", [("1", day), ("2", name), ("3", memo), ("4", signed), ("5", is_("x", "x"))],
    ": date=1; payer=2; text=3; amount=4; header=false; delimiter=semicolon; decimal=,; date_format=dd.MM.yyyy; encoding=windows-1250; account=0608; currency=CZK",
    "0608", "CZK", ";", ",", "%d.%m.%Y", "cp1250", header=False, names=["Žižkov Lístky", "Łódź Bilety"])
csv("erste-hu", [("Date", day), ("Partner", name), ("Amount", unsigned), ("D/C", is_("C", "D")), ("Note", memo)],
    ": date=Date; payer=Partner; amount=Amount; indicator=D/C; text=Note; account=0609; currency=EUR; skip_rows=Date|Total*",
    "0609", "EUR", after="Total,,1.00,,\n")

(HERE / "expected.tsv").write_text("file\tformat\taccount\tcurrency\tlines\tcredits\tdebits\tonly\tmap\n" + "".join(
    "\t".join([*each, ""][:9]) + "\n" for each in expected))
