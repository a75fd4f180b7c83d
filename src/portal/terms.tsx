/** What was agreed with the partner, read only. */
import type { Seer } from '../console/parts.ts';
import { Contact } from '../console/screens/partner.tsx';
import { Agreed, type AgreedTerms, Policies } from '../console/screens/partner-terms.tsx';
import { frameOf } from './overview.tsx';
import type { PartnerScreen, PartnerVisit } from './route.ts';

/** Contacts are not users: without a role, nothing links to an action. */
const NOBODY: Seer = { roles: [], limits: null };

export function termsScreen(view: AgreedTerms, visit: PartnerVisit): PartnerScreen {
  const { frame, menu } = frameOf(visit, '/terms');
  return {
    ...frame,
    content: (
      <>
        {menu}
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
      </>
    ),
  };
}
