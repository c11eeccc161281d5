/// <reference path="./pagewire.d.ts" />

/**
 * Importing this installs the page API, and offers each element that has `data-resource` to agents for as long as it is
 * in the document. It exports nothing; on a server that renders it does nothing.
 */
export {};
