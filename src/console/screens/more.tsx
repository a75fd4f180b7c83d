import { ComponentChildren } from 'preact';
import { counted } from '#text';

/** Lines of a list in the cockpit; of the changes, for each currency. */
export const LISTED = 100;

export const More = ({ count, children }: { count: number; children: ComponentChildren }) =>
  count > 0 && (
    <p class="soft">
      {`and ${counted(count)} more: `}
      {children}
    </p>
  );
