/**
 * The column maps of common banks' exports. A user gives a map's name, and the account if the export has no column for
 * it. Banks change their exports: the columns are checked when a file is read.
 */
type KnownMap = Readonly<{ columns: Readonly<Record<string, string | readonly string[]>> }> &
  Readonly<Record<string, unknown>>;

const US = { date_format: 'MM/dd/yyyy' } as const;
const GB = { date_format: 'dd/MM/yyyy', currency: 'GBP' } as const;
const DE = { date_format: 'dd.MM.yy', decimal: ',', delimiter: ';', currency: 'EUR' } as const;
const NL = { decimal: ',', currency: 'EUR' } as const;

export const BANK_CSV_MAPS: Readonly<Record<string, KnownMap>> = {
  'bank-of-america': {
    ...{ ...US, skip_lines: 6, skip_rows: [{ column: 'Amount', values: [''] }] },
    columns: { date: 'Date', amount: 'Amount', text: ['Description'], balance: 'Running Bal.' },
  },
  barclays: {
    ...GB,
    columns: { date: 'Date', account: 'Account', amount: 'Amount', text: ['Memo'], type: 'Subcategory' },
  },
  'capital-one': {
    ...{ date_format: 'MM/dd/yy', credit_values: ['Credit'], debit_values: ['Debit'] },
    columns: {
      ...{ date: 'Transaction Date', account: 'Account Number', amount: 'Transaction Amount', balance: 'Balance' },
      ...{ indicator: 'Transaction Type', text: ['Transaction Description'] },
    },
  },
  chase: {
    ...US,
    columns: { date: 'Posting Date', amount: 'Amount', text: ['Description'], type: 'Type', balance: 'Balance' },
  },
  commerzbank: {
    ...{ ...DE, date_format: 'dd.MM.yyyy' },
    columns: {
      ...{ date: 'Buchungstag', value_date: 'Wertstellung', amount: 'Betrag', currency: 'Währung', type: 'Umsatzart' },
      ...{ account: 'IBAN Auftraggeberkonto', text: ['Buchungstext'] },
    },
  },
  dkb: {
    ...{ ...DE, skip_lines: 4, skip_rows: [{ column: 'Status', values: ['Vorgemerkt'] }] },
    columns: {
      ...{ date: 'Buchungsdatum', value_date: 'Wertstellung', amount: 'Betrag (€)', text: ['Verwendungszweck'] },
      ...{ payer: 'Zahlungspflichtige*r', payer_account: 'IBAN', customer_reference: 'Kundenreferenz' },
    },
  },
  'ing-nl': {
    ...{ ...NL, date_format: 'yyyyMMdd', delimiter: ';', credit_values: ['Bij'], debit_values: ['Af'] },
    columns: {
      ...{ date: 'Datum', account: 'Rekening', amount: 'Bedrag (EUR)', indicator: 'Af Bij', type: 'Mutatiesoort' },
      ...{ payer: 'Naam / Omschrijving', payer_account: 'Tegenrekening', text: ['Mededelingen'] },
    },
  },
  lloyds: {
    ...GB,
    columns: {
      ...{ date: 'Transaction Date', account: 'Account Number', debit: 'Debit Amount', credit: 'Credit Amount' },
      ...{ text: ['Transaction Description'], type: 'Transaction Type', balance: 'Balance' },
    },
  },
  mercury: {
    ...{ date_format: 'MM-dd-yyyy', skip_rows: [{ column: 'Status', values: ['Pending', 'Failed', 'Cancelled'] }] },
    columns: {
      date: 'Date (UTC)',
      amount: 'Amount',
      payer: 'Description',
      text: ['Bank Description', 'Reference', 'Note'],
    },
  },
  monzo: {
    ...GB,
    columns: {
      ...{
        date: 'Date',
        amount: 'Amount',
        currency: 'Currency',
        payer: 'Name',
        text: ['Notes and #tags', 'Description'],
      },
      ...{ bank_reference: 'Transaction ID', type: 'Type' },
    },
  },
  n26: {
    currency: 'EUR',
    columns: {
      ...{ date: 'Booking Date', value_date: 'Value Date', amount: 'Amount (EUR)', payer: 'Partner Name' },
      ...{ payer_account: 'Partner Iban', text: ['Payment Reference'], type: 'Type' },
    },
  },
  rabobank: {
    ...{ ...NL, encoding: 'windows-1252' },
    columns: {
      ...{ date: 'Datum', value_date: 'Rentedatum', account: 'IBAN/BBAN', currency: 'Munt', amount: 'Bedrag' },
      ...{ balance: 'Saldo na trn', payer: 'Naam tegenpartij', payer_account: 'Tegenrekening IBAN/BBAN' },
      ...{ customer_reference: 'Betalingskenmerk', type: 'Code', return_code: 'Reden retour' },
      text: ['Omschrijving-1', 'Omschrijving-2', 'Omschrijving-3'],
    },
  },
  'rakuten-jp': {
    ...{ date_format: 'yyyyMMdd', encoding: 'shift_jis', currency: 'JPY' },
    columns: { date: '取引日', amount: '入出金(円)', balance: '取引後残高(円)', text: ['入出金内容'] },
  },
  sparkasse: {
    ...{ ...DE, encoding: 'windows-1252', skip_rows: [{ column: 'Info', values: ['Umsatz vorgemerkt'] }] },
    columns: {
      ...{ date: 'Buchungstag', value_date: 'Valutadatum', account: 'Auftragskonto', amount: 'Betrag' },
      ...{ currency: 'Waehrung', payer: 'Beguenstigter/Zahlungspflichtiger', payer_account: 'Kontonummer/IBAN' },
      ...{ customer_reference: 'Kundenreferenz (End-to-End)', text: ['Verwendungszweck'], type: 'Buchungstext' },
    },
  },
  starling: {
    ...GB,
    columns: {
      ...{ date: 'Date', amount: 'Amount (GBP)', balance: 'Balance (GBP)', payer: 'Counter Party' },
      ...{ text: ['Reference', 'Notes'], type: 'Type' },
    },
  },
  'wells-fargo': { ...{ ...US, header: false }, columns: { date: '1', amount: '2', text: ['5'] } },
  wise: {
    date_format: 'dd-MM-yyyy',
    columns: {
      ...{ date: 'Date', amount: 'Amount', currency: 'Currency', balance: 'Running Balance', payer: 'Payer Name' },
      ...{ bank_reference: 'TransferWise ID', text: ['Payment Reference', 'Description'] },
    },
  },
};
