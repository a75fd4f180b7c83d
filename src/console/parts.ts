/** What a screen is made of: its page, forms, links, columns and the parameters of its address. */
export * from './action-link.tsx';
export * from './columns.tsx';
export * from './form.tsx';
export * from './kit.tsx';
export * from './page.tsx';
export * from './parameters.ts';
