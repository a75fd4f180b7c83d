/** The page of a seal: of a month, of its books, or a checkpoint. */
import type { Transaction } from '../../database/transaction.ts';
import { refuse } from '../../errors/refusals.ts';
import { type ChainedSeal, readChain } from '../../lists/seals.ts';
import { readSealRecord } from '../../reports/seal-letters.sql.ts';
import { noteOf, sealTitle } from '../../seals/signature.ts';
import { readSignature } from '../../seals/signatures.sql.ts';
import { ActionLink, type Seer } from '../action-link.tsx';
import { addressOf, Card, Facts, Instant } from '../kit.tsx';
import type { Screen } from '../page.tsx';

const PATH = '/console/audit/seals';

export const SealTheMonth = ({ user }: { user: Seer }) => (
  <ActionLink user={user} action="checkpoint.take" partner={null}>
    Take a checkpoint
  </ActionLink>
);

interface SealView {
  readonly seal: ChainedSeal;
  /** The text whose SHA-256 is the seal. A signed seal has its signature lines below the text. */
  readonly note: string;
}

/** Throws argument_invalid. */
export async function readSeal(
  tx: Transaction,
  asked: { readonly kind: string; readonly name: string },
): Promise<SealView> {
  const seal = (await readChain(tx)).find(({ kind, name }) => kind === asked.kind && name === asked.name);
  if (seal === undefined) {
    const value = `${asked.kind} ${asked.name}`;
    throw refuse('argument_invalid', { argument: 'seal', value, reason: 'is not the name of a seal' });
  }
  const signature = await readSignature(tx, seal);
  const record = await readSealRecord(tx, seal);
  return { seal, note: signature === undefined ? record : noteOf(record, signature) };
}

export function sealScreen({ seal, note }: SealView): Screen {
  const title = sealTitle(seal);
  return {
    place: 'audit',
    title: title.charAt(0).toUpperCase() + title.slice(1),
    crumbs: [{ name: 'Seals', href: addressOf(PATH, { kind: seal.kind }) }],
    content: (
      <div class="stack">
        <Card title="Seal">
          <Facts
            facts={[
              ['SHA-256', <code class="hash">{seal.seal}</code>],
              [
                'Follows',
                seal.previous === null ? (
                  'none: it is the first'
                ) : (
                  <a href={`${PATH}/${seal.kind}/${seal.previous.name}`}>
                    <code class="hash">{seal.previous.seal}</code>
                  </a>
                ),
              ],
              ['Made', <Instant at={seal.made_at} />],
              ['Signed by', seal.signed_by ?? 'no one'],
              ['Time stamp', seal.stamped_at !== null && `${seal.stamped_at.slice(0, 19)}Z by ${seal.stamped_by}`],
              [
                'Letter',
                seal.letter === null ? 'none' : `${seal.letter}${seal.to === null ? '' : `, to ${seal.to.join(', ')}`}`,
              ],
            ]}
          />
        </Card>
        <Card
          title="Record"
          note={
            seal.signed_by === null ? 'its SHA-256 is the seal' : 'a signed note: the SHA-256 of its text is the seal'
          }
        >
          <pre>{note}</pre>
        </Card>
      </div>
    ),
  };
}
