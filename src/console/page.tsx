import { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { periodOf, User } from '#people/roles';
import { assetUrl } from './assets.ts';
import { Theme } from './cookies.ts';
import { Form } from './form.tsx';
import { Tabs } from './kit.tsx';
import { Place, PlaceLink, placesOf, sectionOf } from './menu.ts';

export type PageUser = Readonly<{
  name: string;
  role: string;
  issuer: string;
  sandbox: boolean;
  version: string;
  theme: Theme | null;
  /** Whether single-key shortcuts are on (cookies.ts). */
  keys: boolean;
  login: string;
  formToken: string;
  roles: User['roles'];
  limits: User['limits'];
}>;

export type Screen = Readonly<{
  place: Place | null;
  title: string;
  crumbs?: readonly Readonly<{ name: string; href: string }>[];
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  /** The page of its section whose tab is current (menu.ts), or tabs of its own. */
  tab?: string;
  tabs?: ComponentChildren;
  content: ComponentChildren;
}>;

/** Keeps htmx from evaluating code, adding styles and requesting other servers. */
const HTMX = JSON.stringify({
  allowEval: false,
  includeIndicatorStyles: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
  // Error pages are shown like other pages.
  responseHandling: [
    { code: '204', swap: false },
    { code: '...', swap: true },
  ],
});

const Head = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>{title}</title>
    <link rel="icon" href={assetUrl('icon.svg')} />
    <link rel="stylesheet" href={assetUrl('fonts.css')} />
    <link rel="stylesheet" href={assetUrl('console.css')} />
    {children}
  </head>
);

export const page = (reader: PageUser, screen: Screen): string =>
  `<!doctype html>${render(
    <html lang="en" data-theme={reader.theme ?? undefined} data-keys={reader.keys ? undefined : 'off'}>
      <Head title={`${screen.title} · ${reader.issuer}`}>
        <meta name="htmx-config" content={HTMX} />
        <script src={assetUrl('htmx.js')} defer />
        <script src={assetUrl('keys.js')} defer />
        <script src={assetUrl('current.js')} defer />
        <script src={assetUrl('sum.js')} defer />
        <script src={assetUrl('upload.js')} defer />
        <script src={assetUrl('passkeys.js')} defer />
      </Head>
      <body hx-boost="true">
        <a class="skip" href="#main">
          Skip to content
        </a>
        <div class="frame">
          <Rail reader={reader} place={screen.place} />
          <div class="body">
            <Topbar reader={reader} />
            <main id="main" tabIndex={-1}>
              <p class="printed">{reader.issuer}</p>
              <Title tabs={<SectionTabs reader={reader} tab={screen.tab} />} {...screen} />
              {screen.content}
            </main>
          </div>
        </div>
        <Keys places={placesOf(reader)} />
      </body>
    </html>,
  )}`;

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ['/', 'search'],
  ['j k', 'next or previous row'],
  ['Enter', 'open the row'],
  ['x', 'select the row'],
  ['.', "the page's first action"],
  ['Esc', 'leave the field, close this list, or go to the page above'],
  ['?', 'this list'],
];

/** The script keys.js shows this dialog. */
const Keys = ({ places }: { places: readonly PlaceLink[] }) => (
  <dialog class="keys" id="keys" aria-labelledby="keys-title">
    <h2 id="keys-title">Keyboard</h2>
    <dl class="facts">
      {[...KEYS, ...places.map(({ key, name }) => [`g ${key}`, name] as const)].map(([keys, does]) => (
        <>
          <dt>
            {keys.split(' ').map((key) => (
              <>
                <kbd>{key}</kbd>{' '}
              </>
            ))}
          </dt>
          <dd>{does}</dd>
        </>
      ))}
    </dl>
    <form method="dialog">
      <button type="submit">Close</button>
    </form>
  </dialog>
);

/** A page with a single card, for users who are not signed in. */
export const outerPage = (
  outer: Pick<PageUser, 'issuer' | 'sandbox' | 'theme'> & {
    title: string;
    scripts?: readonly string[] | undefined;
    brand?: string;
  },
  content: ComponentChildren,
): string =>
  `<!doctype html>${render(
    <html lang="en" data-theme={outer.theme ?? undefined}>
      <Head title={`${outer.title} · ${outer.issuer}`}>
        {outer.scripts?.map((name) => (
          <script src={assetUrl(name)} defer />
        ))}
      </Head>
      <body>
        <main class="outer" id="main">
          <p class="brand">
            <Mark /> {outer.brand ?? 'Reckoner'} {outer.sandbox && <span class="sandbox-mark">Sandbox</span>}
          </p>
          <section class="card">
            <div class="in">
              <h1>{outer.title}</h1>
              {content}
            </div>
          </section>
          {outer.brand === undefined && <p class="soft">{outer.issuer}</p>}
        </main>
      </body>
    </html>,
  )}`;

export type PartnerReader = Pick<PageUser, 'issuer' | 'sandbox' | 'theme' | 'formToken'> &
  Readonly<{
    partner: string;
    contact: string;
  }>;

/** A page of the partner's place, without rail, search or scripts. */
export const partnerPage = (reader: PartnerReader, screen: Omit<Screen, 'place'>): string =>
  `<!doctype html>${render(
    <html lang="en" data-theme={reader.theme ?? undefined}>
      <Head title={`${screen.title} · ${reader.issuer}`} />
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <div class="body partner-place">
          <header class="topbar">
            <a class="brand" href="/place">
              <Mark /> {reader.issuer} {reader.sandbox && <span class="sandbox-mark">Sandbox</span>}
            </a>
            <span class="who">
              <Soft>{reader.contact}</Soft>
              <Form action="/place/sign-out" token={reader.formToken}>
                <button class="quiet" type="submit">
                  Sign out
                </button>
              </Form>
            </span>
          </header>
          <main id="main">
            <Title {...screen} />
            {screen.content}
          </main>
        </div>
      </body>
    </html>,
  )}`;

const Mark = () => (
  <svg width="20" height="20" viewBox="0 0 20 20" fill="none" aria-hidden="true">
    <rect x="1" y="1" width="18" height="18" rx="5" fill="currentColor" />
    <path d="M5.5 7h9M5.5 10h9M5.5 13h5" stroke="var(--ground)" stroke-width="1.6" stroke-linecap="round" />
  </svg>
);

const Rail = ({ reader, place }: { reader: PageUser; place: Place | null }) => (
  <aside class="rail">
    <a class="brand" href="/console">
      <Mark />
      Reckoner {reader.sandbox && <span class="sandbox-mark">Sandbox</span>}
    </a>
    <nav aria-label="Places">
      <ul>
        {placesOf(reader).map(({ path, at, name, key }) => (
          <li>
            <a
              href={path === '' ? '/console' : `/console/${at ?? path}`}
              aria-current={path === place ? 'page' : undefined}
              data-key={`g ${key}`}
            >
              {name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
    <footer>
      <span>{reader.issuer}</span>
      <span>Version {reader.version}</span>
    </footer>
  </aside>
);

const Search = () => (
  <search class="search">
    <form action="/console/search">
      <input
        type="search"
        name="q"
        aria-label="Search by number, partner, amount, reference or quote"
        placeholder="Search number, partner, amount, reference…"
        data-key="/"
      />
      <kbd>/</kbd>
    </form>
  </search>
);

const Topbar = ({ reader }: { reader: PageUser }) => (
  <header class="topbar">
    {periodOf(reader) === null && <Search />}
    <span class="who">
      <a href="/console/account">{reader.name}</a> <Soft>{reader.role}</Soft>
      <Form action="/console/sign-out" token={reader.formToken} boost={false}>
        <button class="quiet" type="submit">
          Sign out
        </button>
      </Form>
    </span>
  </header>
);

const Soft = ({ children }: { children: ComponentChildren }) => <span class="count">{children}</span>;

function SectionTabs({ reader, tab = '' }: { reader: PageUser; tab: string | undefined }) {
  const section = sectionOf(reader, tab);
  return section && <Tabs {...section} />;
}

const Title = ({ title, crumbs = [], lead, actions, tabs }: Omit<Screen, 'place'>) => (
  <>
    {crumbs.length > 0 && (
      <nav class="crumbs" aria-label="Where this is">
        {crumbs.map(({ name, href }) => (
          <>
            <a href={href}>{name}</a>
            {' / '}
          </>
        ))}
      </nav>
    )}
    <div class="title">
      <h1>{title}</h1>
      {lead && <p>{lead}</p>}
      {actions && <div class="actions">{actions}</div>}
    </div>
    {tabs}
  </>
);
