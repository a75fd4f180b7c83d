/** The headers of every page with a sign-in: only content from this server, never in a frame. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    ...['script-src', 'style-src', 'font-src', 'img-src', 'connect-src', 'form-action', 'frame-src'].map(
      (kind) => `${kind} 'self'`,
    ),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  // The path can be a secret, so only the origin is sent as Referer. `no-referrer` would also hide a form's origin, which
  // is checked.
  'Referrer-Policy': 'strict-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'X-Robots-Tag': 'noindex, nofollow',
};
