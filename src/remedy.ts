/**
 * What to do about something, as data. The command line writes it as a command that can be copied (cli/remedies.ts), the
 * console as a button (console/remedies.tsx), an e-mail as a link. Refusals and findings carry it.
 */
export interface Remedy {
  /** In the imperative: `Release it`. */
  readonly label: string;
  /** The act that does it, and what is known of its input. A test compares both with the act. */
  readonly action: string;
  readonly input: Known;
}

/** What is known of an act's input; of a field that takes several values, all of them. */
export type Known = Readonly<Record<string, string | readonly string[]>>;

/** The page of an act with what is known of its input. */
export const addressOf = ({ action, input }: Pick<Remedy, 'action' | 'input'>): string => {
  const values = Object.entries(input).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const known = new URLSearchParams(values).toString();
  return `/console/acts/${action}${known === '' ? '' : `?${known}`}`;
};
