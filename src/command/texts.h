/* Errors of commands on data that are given in more than one folder: by who runs the command, and by
 * who works out what it would have answered. The words are Redis's: clients look for them. */
#ifndef HS_COMMAND_TEXTS_H
#define HS_COMMAND_TEXTS_H

#define HS_TEXT_NOT_INTEGER "ERR value is not an integer or out of range"
#define HS_TEXT_ADD_OVERFLOW "ERR increment or decrement would overflow"

#endif
