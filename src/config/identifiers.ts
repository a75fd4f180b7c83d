/**
 * Check digits of tax numbers and electronic addresses. jsvat knows the VAT numbers of Europe: it has no dependencies and
 * 40 small files. (stdnum has more kinds of numbers, but is ten times as large, and loads them all.)
 */
import { checkVAT, countries } from 'jsvat';

const BY_COUNTRY = new Map(countries.map((country) => [country.codes[0] as string, country]));

/** The member states of the European Union, Norway and Switzerland, whose VAT numbers begin with letters. */
const CHECKED = new Set(
  `AT BE BG CH CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL NO PL PT RO SE SI SK`.split(' '),
);

/** The first digit of a Japanese corporate number is a check digit (Ordinance of 2014, article 2). */
function japaneseNumberIsRight(number: string) {
  const digits = [...number].map(Number);
  const sum = digits
    .slice(1)
    .reverse()
    .reduce((total, digit, index) => total + digit * (index % 2 === 0 ? 1 : 2), 0);
  return digits[0] === 9 - (sum % 9);
}

/** The last two digits of a Belgian number are 97 less the rest of the others by 97. (jsvat refuses those from 1 on.) */
function belgianNumberIsRight(number: string) {
  const digits = number.padStart(10, '0');
  return Number(digits.slice(8)) === 97 - (Number(digits.slice(0, 8)) % 97);
}

/** Why a text is not a tax number of this country; undefined if it is, or if its format is unknown. */
export function taxNumberProblem(number: string, of: string) {
  if (of === 'JP') {
    if (!/^T\d{13}$/.test(number)) return 'must be T and 13 digits such as T7000012050002';
    return japaneseNumberIsRight(number.slice(1)) ? undefined : 'has a wrong check digit';
  }
  const country = CHECKED.has(of) ? BY_COUNTRY.get(of) : undefined;
  if (country === undefined) return undefined;
  const plain = number.replace(/[ .-]/g, '');
  if (of === 'BE') {
    if (!/^BE[01]?\d{9}$/.test(plain)) return 'does not have the format of a VAT number of BE';
    return belgianNumberIsRight(plain.slice(2)) ? undefined : 'has a wrong check digit';
  }
  const found = checkVAT(plain, [country]);
  const hasFormat = found.isValidFormat && plain.startsWith(prefixOf(of));
  if (!hasFormat) return `does not have the format of a VAT number of ${of}`;
  return found.isValid ? undefined : 'has a wrong check digit';
}

const prefixOf = (country: string) => (country === 'GR' ? 'EL' : country);

/** Why a partner's tax id is wrong, if it begins as the VAT numbers of its country do. */
export const taxIdProblem = (taxId: string, country: string) =>
  taxId.startsWith(prefixOf(country)) ? taxNumberProblem(taxId, country) : undefined;

/** The last digit of a GLN is a check digit, modulo 10 with the weights 3 and 1 (GS1 General Specifications, 7.9.1). */
function glnIsRight(number: string) {
  const digits = [...number].map(Number);
  const sum = digits.slice(0, -1).reduce((total, digit, index) => total + digit * (index % 2 === 0 ? 1 : 3), 0);
  return digits.at(-1) === (10 - (sum % 10)) % 10;
}

/**
 * The schemes whose identifiers are VAT numbers or parts of them: the country, and the rest of the VAT number before and
 * behind the identifier. Peppol checks 0007, 0184, 0192, 0208 and 0211 (PEPPOL-COMMON-R041 to R049).
 */
const NUMBERS: Readonly<Record<string, readonly [country: string, before?: string, behind?: string]>> = {
  ...{ '0007': ['SE', 'SE', '01'], '0184': ['DK'], '0192': ['NO', 'NO'], '0208': ['BE', 'BE'], '0211': ['IT'] },
  ...{ 9910: ['HU'], 9914: ['AT'], 9920: ['ES'], 9925: ['BE'], 9926: ['BG'], 9928: ['CY'], 9929: ['CZ'] },
  ...{ 9930: ['DE'], 9931: ['EE'], 9933: ['GR'], 9934: ['HR'], 9935: ['IE'], 9937: ['LT'], 9938: ['LU'] },
  ...{ 9939: ['LV'], 9943: ['MT'], 9944: ['NL'], 9945: ['PL'], 9946: ['PT'], 9947: ['RO'], 9949: ['SI'] },
  ...{ 9950: ['SK'], 9955: ['SE'], 9957: ['FR'] },
};

/** Why the address of a scheme of the EAS code list is wrong; undefined if it is right, or if its form is unknown. */
export function addressProblem(scheme: string, id: string) {
  if (scheme === '0088') {
    return /^\d{13}$/.test(id) && glnIsRight(id) ? undefined : 'must be a GLN: 13 digits with a check digit';
  }
  if (scheme === '0106') return /^\d{8}$/.test(id) ? undefined : 'must be the 8 digits of a Dutch KvK number';
  if (scheme === '0190') return /^\d{20}$/.test(id) ? undefined : 'must be the 20 digits of a Dutch OIN';
  const [country, before = '', behind = ''] = NUMBERS[scheme] ?? [];
  const problem = country === undefined ? undefined : taxNumberProblem(`${before}${id}${behind}`, country);
  return problem?.replace('a VAT number', before === '' ? 'a VAT number' : 'a number');
}
