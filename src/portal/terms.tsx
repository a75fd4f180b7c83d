/** What was agreed with the partner, read only. */
import { Seer } from '#console/parts';
import { Contact } from '#console/screens/partner';
import { Agreed, AgreedTerms, Policies } from '#console/screens/partner-terms';
import { frameOf } from './overview.tsx';
import { PartnerScreen, PartnerVisit } from './route.ts';

/** Contacts are not users: without a role, nothing links to an action. */
const NOBODY: Seer = { roles: [], limits: null };

export function termsScreen(view: AgreedTerms, visit: PartnerVisit): PartnerScreen {
  return {
    ...frameOf(visit, '/terms'),
    content: (
      <div class="stack">
        <Policies view={view} user={NOBODY} />
        <div class="columns">
          <div class="stack">
            <Agreed view={view} user={NOBODY} />
          </div>
          <div class="stack">
            <Contact partner={view.partner} user={NOBODY} />
          </div>
        </div>
      </div>
    ),
  };
}
