/** The types of a file that pages only fetch. It exports nothing. */
export {};
