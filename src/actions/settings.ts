import { ApprovalRule, SECTION_NAMES, SECTIONS, Section, Settings, sectionSchema } from '#config/settings';
import { fieldProblems } from '#config/validation';
import { FieldProblem, reasonOf, refuse } from '#errors/refusals';
import { checkAccountRules } from '#general-ledger/export';
import { Amount } from '#money';
import { Installation } from '#people/audit-events';
import { changeWords } from '#people/field-changes';
import { scopeOf } from '#people/roles';
import {
  adoptionRule,
  adoptSection,
  proposedByFiles,
  readInForce,
  sectionFields,
  statedByFile,
  valueInForce,
} from '#people/settings-in-force';
import { choice, defineAction, Facts, FileInput, file } from './action.ts';
import { approvalProblems } from './rules.ts';

type Proposal = Readonly<{ section: Section; file?: FileInput | undefined }>;

/** Sections that decide where money goes, or who must approve. Only administrators adopt them. */
const ADMINISTRATORS: readonly Section[] = ['instructions', 'approvals'];

export const settingsAdopt = defineAction({
  name: 'settings.adopt',
  title: 'Put settings in force',
  command: {
    arguments: { section: '<section>' },
    dryRun: 'show them next to those in force; write nothing',
    help: `Puts a section of settings.json in force, or accounts.json ("accounts").
Until a section is adopted for the first time, the file is in force. After
that, the file only proposes changes.`,
  },
  role: 'administrator',
  otherRole: 'finance',
  needsProof: true,
  withoutRole: async (_tx, { actor }, { section }) =>
    !ADMINISTRATORS.includes(section) && actor.user !== undefined && scopeOf(actor.user, 'finance') === null,
  input: {
    section: choice('Section', 'The part of the settings.', SECTION_NAMES),
    file: file('File', 'The section as JSON. Without a file, the section as the server states it.').optional(),
  },
  subject: ({ section }) => section,
  rule: ({ settings, environment }, input) =>
    adoptionRule(settings, input.section) ??
    (weakenedRules({ settings, environment }, input).length > 0 ? { always: true } : undefined),
  async perform(tx, context, input) {
    const { section } = input;
    const value = proposalOf(context, input);
    if (section === 'accounts') await checkAccountRules(tx, value as never, input.file?.name ?? 'accounts.json');
    return { value, changes: await adoptSection(tx, context, { section, value }) };
  },
  async facts(tx, { section }, _result, context): Promise<Facts> {
    const settings = await readInForce(tx, context.settings);
    const fields = [...sectionFields(section, valueInForce({ ...context, settings }, section))];
    const adopted = settings.sections?.adopted.includes(section) ? 'yes' : 'no';
    return {
      [SECTIONS[section]]: { adopted, ...Object.fromEntries(fields.map(([name, value]) => [name, `${value}`])) },
    };
  },
  async report({ input, result: { value, changes }, preview }, { settings, environment }) {
    const { section } = input;
    const weakened = weakenedRules({ settings, environment }, input);
    const inForce = preview ? 'would be in force' : 'is in force';
    const now = { ...settings, [section]: value };
    const left = preview
      ? []
      : proposedByFiles({ environment, settings: now }).filter((each) => each.section === section);
    return {
      json: { section, changes },
      text: [
        `${SECTIONS[section]} ${inForce} ${changes.length === 0 ? 'unchanged, once adopted' : 'with changes'}.`,
        ...(weakened.length === 0 ? [] : [`Fewer actions would need a second person: ${weakened.join(', ')}.`]),
      ].join('\n'),
      blocks:
        changes.length === 0
          ? []
          : [
              {
                title: 'Changes',
                table: {
                  headings: ['field', '~before', '~after'],
                  rows: changes.map(changeWords),
                },
              },
            ],
      notes: left.map(
        () =>
          'The file on the server states other values, and keeps being reported. Correct it, or leave the section out.',
      ),
    };
  },
});

/** Refusals: proposal_missing, proposal_invalid, and those of reading accounts.json. */
function proposalOf(context: Installation, { section, file: given }: Proposal): object | null {
  if (given === undefined) {
    const stated = statedByFile(context, section);
    if (stated === undefined) throw refuse('proposal_missing', { section });
    return stated;
  }
  const invalid = (problems: readonly FieldProblem[]) => refuse('proposal_invalid', { section, problems });
  let json: unknown;
  try {
    json = JSON.parse(given.bytes.toString('utf8'));
  } catch (error) {
    throw invalid([{ path: '', reason: `is not JSON: ${reasonOf(error)}` }]);
  }
  const parsed = sectionSchema(section).safeParse(json);
  const problems = parsed.success ? otherProblems(context, section, parsed.data) : fieldProblems(parsed.error);
  if (!parsed.success || problems.length > 0) throw invalid(problems);
  return parsed.data;
}

function otherProblems({ settings }: Installation, section: Section, value: object | null): FieldProblem[] {
  if (section === 'approvals') return approvalProblems(value as Settings['approvals']);
  if (section !== 'tax' || value === null || settings.we_are !== 'principal') return [];
  return [{ path: '', reason: 'must be empty, because we_are is principal' }];
}

/** The rules that a proposal removes, or that would let more be done without a second person. */
function weakenedRules({ settings, environment }: Installation, input: Proposal) {
  if (input.section !== 'approvals') return [];
  const proposed = proposalOf({ settings, environment }, input) as Settings['approvals'];
  return Object.entries(settings.approvals).flatMap(([name, rule]) => (isWeaker(proposed[name], rule) ? [name] : []));
}

/** A currency that a rule does not name needs approval for any amount. */
function isWeaker(after: ApprovalRule | undefined, before: ApprovalRule) {
  if (after === undefined) return true;
  if (!('above' in after)) return false;
  const limits: Readonly<Record<string, string>> = 'above' in before ? before.above : {};
  return Object.entries(after.above).some(([currency, limit]) => {
    const old = limits[currency];
    return old === undefined || Amount.of(old, currency).isLessThan(Amount.of(limit, currency));
  });
}
