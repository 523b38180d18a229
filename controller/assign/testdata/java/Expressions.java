import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

/** Prints what re2j makes of regular expressions: the reason for which it refuses one, or which topics it matches as a whole. */
public class Expressions {
    static final String[] TOPICS = {"a", "b", "ab", "foo", "foo.bar", "foo-bar", "FOO", "x1", "x12", "_internal", "__consumer_offsets", "topic.1", "a_b", ""};
    static final String[] PATTERNS = {
        "", "a", "foo", "foo.*", "foo\\..*", ".*", ".+", "a|b", "(a|b)+", "^foo$", "^a|b$", "\\Aa\\z", "a$", "\\d+", "x\\d", "x\\d{2}", "x\\d{1,2}", "[a-z]+", "[^a-z]+",
        "(?i)foo", "(?i:F)oo", "(?s).*", "(?m)^a$", "(?U)a+", "\\w+", "\\pL+", "\\p{Greek}", "\\p{Lu}+", "[[:alpha:]]+", "[[:word:]]+", "\\Qfoo.bar\\E", "\\Q.*", "a??", "a+?", "__.*",
        "(?P<name>foo)", "(?<name>foo)", "(?P<name>a)(?P<name>b)", "(?P<n-x>a)", "(?P=name)",
        "*", "+", "?", "a**", "a*+", "a++", "a{2", "a{2}", "a{,2}", "a{1001}", "a{2,1}", "(a{1000}){1000}", "{1}", "[", "[a", "[]a]", "[z-a]", "[a-\\d]", "[[:foo:]]", "(", ")", "(a", "a)", "(?", "(?P<", "(?P<a", "(?i", "(?z)a", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)",
        "\\", "a\\", "\\8", "\\1", "\\C", "\\Z", "\\G", "\\k<a>", "\\p{Foo}", "\\pX", "\\p", "\\x", "\\x4", "\\x61", "\\x{61}", "\\x{110000}", "\\07", "\\a", "\\e", "\\_", "\\-", "\\y", "|", "a||b", "()", "(|a)*", "(?:)", "a{0}", "\\b", "\\Ba", "\\bfoo\\b",
    };

    static String escaped(String s) { return s.replace("\\", "\\\\"); }

    public static void main(String[] args) {
        for (String pattern : PATTERNS) {
            System.out.println("pattern " + pattern);
            try {
                Pattern compiled = Pattern.compile(pattern);
                StringBuilder matches = new StringBuilder("matches");
                for (String topic : TOPICS) if (compiled.matcher(topic).matches()) matches.append(" \"").append(topic).append("\"");
                System.out.println(matches);
            } catch (PatternSyntaxException e) {
                System.out.println("refused " + e.getDescription());
            } catch (RuntimeException e) {
                System.out.println("failed " + e);
            }
        }
    }
}
