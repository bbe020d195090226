#include "base/err.h"

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
