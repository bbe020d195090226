#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

const char *hs_err_text(int code)
{
	switch (code) {
	case 0:
		return "fine";
#define X(name, value, text)                                                                       \
	case name:                                                                                 \
		return text;
		HS_ERR_TABLE(X)
#undef X
	default:
		return "unknown error";
	}
}

int hs_err_set(int code, char *error, size_t error_size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, error_size, format, arguments);
	va_end(arguments);
	return code;
}
