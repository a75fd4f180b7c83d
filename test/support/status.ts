/** The status with a sentence for each thing that cannot wait, as the command prints it. */
import { inCommands } from '../../src/cli/remedies.ts';
import { readStatus as read, type Status } from '../../src/reports/status.ts';

export async function readStatus(
  ...asked: Parameters<typeof read>
): Promise<Status & { readonly attention: string[] }> {
  const status = await read(...asked);
  return { ...status, attention: await inCommands(status.findings) };
}
