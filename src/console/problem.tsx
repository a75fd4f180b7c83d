import { FastifyRequest } from 'fastify';
import { httpStatusOf, Refusal } from '#errors/refusals';
import { Shared } from '#http/shared';
import { capitalized } from '#text';
import { themeOf } from './cookies.ts';
import { inOneLine } from './kit.tsx';
import { outerPage, PageUser, page } from './page.tsx';
import { Remedies } from './remedies.tsx';
import { settingsNow } from './route.ts';

const TITLES: Partial<Record<Refusal['code'], string>> = {
  page_unknown: 'Page not found',
  role_needed: 'Not your role',
  form_refused: 'Form not accepted',
  argument_invalid: 'Not a valid value',
  session_missing: 'Signed out',
  sign_in_link_invalid: 'This link has expired',
  sign_in_refused: 'Not signed in',
  console_insecure: 'Not served here',
  rate_limited: 'Too many requests',
  internal: 'Something went wrong',
};

const OTHERS: Readonly<Record<number, string>> = { 400: 'Not valid', 403: 'Not allowed', 404: 'Not found' };

/** What happened: `Document not found` for `document_unknown`. */
export function titleOf({ code }: Refusal): string {
  const [, thing] = /^(.*)_unknown$/.exec(code) ?? [];
  const found = thing && `${capitalized(thing.replaceAll('_', ' '))} not found`;
  return TITLES[code] ?? found ?? OTHERS[httpStatusOf(code)] ?? 'Refused';
}

export const problemPage = (reader: PageUser, refusal: Refusal): string =>
  page(reader, {
    place: null,
    title: titleOf(refusal),
    content: (
      <>
        <p class="problem" role="alert">
          {inOneLine(refusal.message)}
        </p>
        {refusal.remedies.length > 0 && (
          <p class="buttons">
            <Remedies remedies={refusal.remedies} user={reader} partner={[]} />
          </p>
        )}
      </>
    ),
  });

/** What users see of the installation before they sign in. */
export const outerOf = (shared: Shared, request: FastifyRequest) => ({
  issuer: settingsNow(shared).issuer.legal_name || 'Reckoner',
  sandbox: shared.environment.name === 'sandbox',
  theme: themeOf(request),
});

export const signedOutPage = (shared: Shared, request: FastifyRequest, refusal: Refusal): string =>
  outerPage(
    { ...outerOf(shared, request), title: titleOf(refusal) },
    <>
      <p role="alert">{refusal.message}</p>
      <p>
        <a class="button" href="/console/sign-in">
          Sign in
        </a>
      </p>
    </>,
  );
