import { XMLParser } from 'fast-xml-parser';
import { describe, expect, it } from 'vitest';
import { BANKS } from './banks.ts';
import { generate } from './generate.ts';
import { decimal } from './ledger.ts';
import { creditorReference, type Receipt } from './receipts.ts';
import { count, type Facts, judge, type Outcome } from './score.ts';
import { CATEGORIES, CURRENCIES, SHARES, sharedTo, TOTALS } from './shares.ts';

const SEEDS = [1, 2, 20_260_701];
const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
const currencyOf = ({ line: { bank } }: Receipt) => CURRENCIES.find((currency) => currency === bank) ?? 'USD';

describe('The set of receipts', () => {
  it.each(SEEDS)('has the partners, documents and shares of the table with seed %i', (seed) => {
    const { partners, documents, receipts } = generate(seed);
    const credits = documents.filter(({ amount }) => amount < 0).length;
    expect({
      partners: partners.length,
      invoices: documents.length - credits,
      creditNotes: credits,
      receipts: receipts.length,
    }).toEqual(TOTALS);
    for (const category of CATEGORIES)
      for (const currency of CURRENCIES) {
        const own = receipts.filter((each) => each.category === category && currencyOf(each) === currency);
        expect([category, currency, own.length]).toEqual([category, currency, sharedTo(category, currency)]);
      }
    expect(sum(CATEGORIES.map((category) => sum(SHARES[category].receipts)))).toBe(TOTALS.receipts);
  });

  it('is the same for the same seed, and another one for another seed', () => {
    expect(generate(7)).toEqual(generate(7));
    expect(generate(7).receipts).not.toEqual(generate(8).receipts);
  });

  it.each(SEEDS)('has a truth that adds up with seed %i', (seed) => {
    const { documents, receipts } = generate(seed);
    const byNumber = new Map(documents.map((document) => [document.number, document]));
    const parents = new Map(documents.map(({ partner }) => [partner.id, partner.parent]));
    const paid = new Set<string>();
    for (const receipt of receipts) {
      const { allocation, line, payer, category } = receipt;
      for (const { number, amount } of allocation) {
        const document = byNumber.get(number);
        expect(document?.currency).toBe(currencyOf(receipt));
        expect(amount).toBeGreaterThan(0);
        expect(amount).toBeLessThanOrEqual(document?.amount ?? 0);
        expect([document?.partner.id, parents.get(document?.partner.id ?? '')]).toContain(payer);
        expect(document?.month).toBeLessThanOrEqual(receipt.month);
        expect(paid).not.toContain(number);
        paid.add(number);
      }
      // Money that pays nothing stays whole; of the rest, a few cents may be too much.
      const rest = line.amount - sum(allocation.map(({ amount }) => amount));
      if (allocation.length === 0)
        expect(['returned', 'stranger', 'twice', 'otherCurrency', 'onAccount']).toContain(category);
      else expect(rest).toSatisfy((over: number) => (category === 'cents' ? over >= 0 && over < 100 : over === 0));
    }
    expect(new Set(receipts.map(({ line }) => line.reference)).size).toBe(receipts.length);
  });

  it.each(SEEDS)('names the number of the eastern twin where the western one pays, with seed %i', (seed) => {
    const { documents, receipts } = generate(seed);
    const traps = receipts.filter(({ category }) => category === 'nearTwin');
    expect(traps).toHaveLength(4);
    for (const { payer, line } of traps) {
      const [named, own] = [
        documents.find(({ number }) => number === line.text),
        documents.find(({ partner }) => partner.id === payer),
      ];
      expect([named?.partner.role, own?.partner.role]).toEqual(['twin-east', 'twin-west']);
      expect(named?.partner.group).toBe(own?.partner.group);
    }
  });

  it.each(SEEDS)('takes back only payments of the month before with seed %i', (seed) => {
    const { receipts } = generate(seed);
    const returns = receipts.filter(({ takesBack }) => takesBack !== null);
    expect(returns).toHaveLength(6);
    for (const { takesBack, month, line } of returns) {
      const payment = receipts.find((each) => each.line.reference === takesBack);
      expect(payment).toMatchObject({ category: 'clean', month: month - 1, line: { amount: line.amount } });
    }
  });
});

describe('The bank files', () => {
  const { files, receipts } = generate(1);
  const linesOf = (bank: string, month: number) =>
    receipts.filter((receipt) => receipt.line.bank === bank && receipt.month === month);

  it('have every receipt once, with its amount', () => {
    expect(files).toHaveLength(BANKS.length * 3);
    for (const { bank, month, content } of files)
      for (const receipt of linesOf(bank, month)) {
        const { reference, amount } = receipt.line;
        expect(content.split(reference)).toHaveLength(2);
        const found = {
          bai: content.includes(`,${amount},Z,${reference},`),
          xml: content.includes(`<Amt Ccy="${bank}">${decimal(amount, currencyOf(receipt))}</Amt><CdtDbtInd>CRDT`),
          csv: content.includes(`,${amount},,`),
        };
        expect(Object.values(found)).toContain(true);
      }
    expect(sum(files.map(({ bank, month }) => linesOf(bank, month).length))).toBe(receipts.length);
  });

  it('in BAI2 have the records and totals that they state, and no text beyond 70 characters', () => {
    const bai2 = files.filter(({ name }) => name.endsWith('.bai'));
    expect(bai2).toHaveLength(12);
    for (const { content } of bai2) {
      const records = content.trimEnd().split('\n');
      expect(records.at(-1)).toMatch(new RegExp(`,${records.length}/$`));
      const groups = records.filter((record) => record.startsWith('98,'));
      const totals = groups.map((record) => Number(record.split(',')[1]));
      expect(records.at(-1)).toBe(`99,${sum(totals)},${groups.length},${records.length}/`);
      for (const record of records.filter((each) => each.startsWith('88,')))
        expect(record.length).toBeLessThanOrEqual('88,'.length + 70 + '/'.length);
    }
  });

  it('in camt.053 are XML whose entries lead from the opening to the closing balance', () => {
    const camt = files.filter(({ name }) => name.endsWith('.xml'));
    expect(camt).toHaveLength(6);
    for (const { content } of camt) {
      const parsed = new XMLParser({ parseTagValue: false, isArray: (name) => name === 'Ntry' }).parse(content);
      const { Bal: balances, Ntry: entries } = parsed.Document.BkToCstmrStmt.Stmt;
      const cents = ({ Amt: amount }: { Amt: string }) => Math.round(Number(amount) * 100);
      expect(cents(balances[0]) + sum(entries.map(cents))).toBe(cents(balances[1]));
    }
  });
});

describe('References', () => {
  it('have the check digits of ISO 11649', () => {
    // The example of the standard.
    expect(creditorReference('539007547034')).toBe('RF18539007547034');
    expect(creditorReference('INV-2026-000123')).toMatch(/^RF\d\dINV2026000123$/);
  });

  it('stand in place of numbers in a third of the receipts that could carry one, and change nothing else', () => {
    const [without, withThem] = [generate(1), generate(1, { references: true })];
    const carrying = withThem.receipts.filter(({ line }) => /RF\d\dINV/.test(line.creditorReference ?? line.text));
    const able = without.receipts.filter(({ category }) => SHARES[category].reference);
    expect(carrying.length / able.length).toBeGreaterThan(0.33);
    expect(carrying.length / able.length).toBeLessThan(0.38);
    const truthOf = ({ line: { reference, amount }, ...truth }: Receipt) => ({ ...truth, reference, amount });
    expect(withThem.receipts.map(truthOf)).toEqual(without.receipts.map(truthOf));
  });
});

describe('The score', () => {
  const { receipts, documents } = generate(1);
  const owners = new Map(documents.map(({ number, partner }) => [number, partner.id]));
  const of = (category: Receipt['category']) => receipts.find((each) => each.category === category) as Receipt;
  const asTrue = (receipt: Receipt): Outcome => ({
    payer: receipt.payer,
    applications: receipt.allocation.map(({ number, amount }) => ({
      number,
      amount: decimal(amount, currencyOf(receipt)),
    })),
    suggested: [],
    reversed: receipt.takesBack,
  });
  const held: Outcome = { payer: null, applications: [], suggested: [], reversed: null };
  const judged = (receipt: Receipt, outcome: Outcome, balance = '0.00') => {
    const facts: Facts = {
      outcomes: new Map([[receipt.line.reference, outcome]]),
      balances: new Map(documents.map(({ number }) => [number, balance])),
      ownerOf: (number) => owners.get(number),
    };
    return judge([receipt], facts)[0];
  };

  it('calls right what pays the right invoices in full, by the right payer', () => {
    for (const category of CATEGORIES.filter((each) => SHARES[each].mayApply))
      expect([category, judged(of(category), asTrue(of(category)))?.verdict]).toEqual([category, 'right']);
  });

  it('calls it a part if an invoice is missing, or if one owes something that it should not', () => {
    const several = of('several');
    const first = { ...asTrue(several), applications: asTrue(several).applications.slice(0, 1) };
    expect(judged(several, first)?.verdict).toBe('part');
    expect(judged(of('fee'), asTrue(of('fee')), '12.00')?.verdict).toBe('part');
  });

  it('calls wrong another invoice, too much of the right one, and another payer', () => {
    const clean = of('clean');
    const other = documents.find(({ partner, amount }) => partner.id !== clean.payer && amount > 0)?.number as string;
    const [application] = asTrue(clean).applications as [Outcome['applications'][number]];
    const wrong = [
      { ...asTrue(clean), applications: [{ ...application, number: other }] },
      { ...asTrue(clean), applications: [{ ...application, amount: '99999999.00' }] },
      { ...asTrue(clean), payer: owners.get(other) as string },
      { ...held, payer: owners.get(other) as string },
    ];
    for (const outcome of wrong) expect(judged(clean, outcome)?.verdict).toBe('wrong');
  });

  it('calls wrong whatever is applied of money that a person must look at', () => {
    expect(judged(of('nearTwin'), asTrue(of('nearTwin')))?.verdict).toBe('wrong');
    const stranger = of('stranger');
    const [anyone] = documents;
    const applied = { ...held, payer: 'p001', applications: [{ number: anyone?.number ?? '', amount: '1.00' }] };
    expect(judged(stranger, applied)?.verdict).toBe('wrong');
    expect(judged(stranger, held)).toMatchObject({ verdict: 'held', suggestion: null });
  });

  it('reads whose invoices the first suggestion would pay', () => {
    const cut = of('cut');
    const own = cut.allocation.map(({ number }) => number);
    const ofPayer = documents.find(
      ({ number, partner, amount }) => partner.id === cut.payer && amount > 0 && !own.includes(number),
    );
    const ofOther = documents.find(({ partner, amount }) => partner.id !== cut.payer && amount > 0);
    const suggestion = (...suggested: readonly string[]) => judged(cut, { ...held, suggested })?.suggestion;
    expect(suggestion(...own)).toBe('right');
    expect(suggestion(ofPayer?.number as string)).toBe('other');
    expect(suggestion(ofOther?.number as string)).toBe('wrong payer');
    expect(suggestion()).toBe('none');
  });

  it('counts the share of what was applied that is not wrong, and the share of all that needed nobody', () => {
    const facts: Facts = {
      outcomes: new Map(receipts.map((receipt) => [receipt.line.reference, asTrue(receipt)])),
      balances: new Map(documents.map(({ number }) => [number, '0.00'])),
      ownerOf: (number) => owners.get(number),
    };
    const { totals } = count(judge(receipts, facts));
    const never = receipts.filter(({ category }) => !SHARES[category].mayApply);
    const wrong = never.filter(({ allocation }) => allocation.length > 0).length;
    expect(totals).toMatchObject({ receipts: 398, part: 0, wrong, right: 398 - never.length });
    expect(totals.precision).toBeCloseTo((100 * totals.right) / (totals.right + wrong));
    expect(totals.touchless).toBeCloseTo((100 * totals.right) / 398);
  });
});
