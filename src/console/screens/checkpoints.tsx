/** One checkpoint of the log: what it closes, its note with its signatures, and its letter. */

import { ActionLink, Card, Facts, Instant, Screen, Seer } from '#console/parts';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readCheckpoints } from '#log/checkpoints.sql';
import { readNoteOf } from '#log/signatures.sql';
import { checkpointTitle, closedBy, factsOf } from '#log/text';
import { CheckpointLetter, readCheckpointLetters } from '#reports/checkpoint-letters.sql';
import { capitalized } from '#text';

const PATH = '/console/audit/checkpoints';

export const TakeCheckpoint = ({ user }: { user: Seer }) => (
  <ActionLink user={user} action="checkpoint.take" partner={null}>
    Take a checkpoint
  </ActionLink>
);

type CheckpointView = Readonly<{
  checkpoint: CheckpointLetter;
  /** The previous checkpoint; undefined for the first checkpoint. */
  previous: CheckpointLetter | undefined;
  /** The text to give to an auditor or witness, with all signatures. */
  note: string;
}>;

/** Refusal: argument_invalid. */
export async function readCheckpoint(tx: Transaction, size: string): Promise<CheckpointView> {
  const letters = await readCheckpointLetters(tx);
  const at = letters.findIndex((each) => String(each.size) === size);
  const checkpoint = letters[at];
  if (checkpoint === undefined) {
    throw refuse('argument_invalid', { argument: 'size', value: size, reason: 'is not the size of a checkpoint' });
  }
  const [head] = await readCheckpoints(tx, checkpoint.size);
  if (head === undefined) throw new Error(`no checkpoint of ${size} facts`);
  return { checkpoint, previous: letters[at - 1], note: await readNoteOf(tx, head) };
}

export function checkpointScreen({ checkpoint, previous, note }: CheckpointView): Screen {
  const { closes, root, taken_at, signed, cosigned_by, stamped_at, stamped_by, letter, to } = checkpoint;
  return {
    place: 'audit',
    title: capitalized(checkpointTitle(checkpoint)),
    crumbs: [{ name: 'Checkpoints', href: PATH }],
    content: (
      <div class="stack">
        <Card title="Checkpoint">
          <Facts
            facts={[
              ['Closes', closedBy(closes) ?? 'nothing: it is a daily checkpoint'],
              ['Facts', factsOf(checkpoint)],
              ['Root', <code class="hash">{root}</code>],
              [
                'Follows',
                previous === undefined ? (
                  'none: this is the first checkpoint'
                ) : (
                  <a href={`${PATH}/${previous.size}`}>{checkpointTitle(previous)}</a>
                ),
              ],
              ['Taken', <Instant at={taken_at} />],
              ['Signed', signed ? "by the log's key" : 'not signed'],
              ['Cosigned', cosigned_by.length > 0 && `by ${cosigned_by.join(', ')}`],
              ['Time stamp', stamped_at !== null && `${stamped_at.slice(0, 19)}Z by ${stamped_by}`],
              ['Letter', letter === null ? 'none' : `${letter}${to === null ? '' : `, to ${to.join(', ')}`}`],
            ]}
          />
        </Card>
        <Card
          title="Note"
          note={signed ? 'a signed note, for auditors and witnesses' : 'for auditors and witnesses; not signed yet'}
        >
          <pre>{note}</pre>
        </Card>
      </div>
    ),
  };
}
