/** A suggested use of a receipt. */
import { ComponentChildren } from 'preact';
import { Chip, InvoiceLink, Joined, Money } from '#console/kit';
import { ListedException } from '#payments/exceptions';
import { ToDo } from '#remedy';
import { plural } from '#text';

type SuggestionView = Readonly<{
  /** None if the payment may duplicate another one. */
  numbers: readonly string[];
  /** Null for invoices that are paid together. */
  amount: string | null;
  confidence: string | null;
  why: string;
  /** The action that accepts the suggestion. Null if the suggestion must be changed first. */
  accepts: ToDo | null;
}>;

/** Sets of invoices first, then single invoices that are in no set, the most certain of each first. */
export function suggestionsOf({ sets, suggestions }: Pick<ListedException, 'sets' | 'suggestions'>): SuggestionView[] {
  const isInSet = (number: string | null, why: string) =>
    sets.some((set) => set.why === why && number !== null && set.numbers.includes(number));
  return [
    ...sets.map((set) => ({ ...set, amount: null, confidence: null })),
    ...suggestions
      .filter(({ number, why }) => !isInSet(number, why))
      .map(({ number, ...each }) => ({ ...each, numbers: number === null ? [] : [number] })),
  ];
}

export const Suggestion = ({
  of: { numbers, amount, confidence, why },
  currency,
  children,
}: {
  of: SuggestionView;
  currency: string | null;
  children: ComponentChildren;
}) => (
  <li class="suggestion">
    {confidence === null ? (
      <Chip tone="good">{plural(numbers.length, 'invoice')}</Chip>
    ) : (
      <Chip tone={Number(confidence) >= 0.8 ? 'good' : 'plain'}>{`${Math.round(Number(confidence) * 100)} %`}</Chip>
    )}
    <span>
      <Joined>
        {numbers.map((number) => (
          <InvoiceLink number={number} />
        ))}
      </Joined>{' '}
      {amount !== null && currency !== null && <Money amount={amount} currency={currency} />}
      <br />
      <span class="soft">{why}</span>
    </span>
    {children}
  </li>
);
