/** A file that a page fetches: it has nothing for other scripts. */
export {};
