import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.processors.CommandProcessor;
import org.apache.hadoop.hive.ql.processors.CommandProcessorFactory;
import org.apache.hadoop.hive.ql.session.SessionState;

/**
 * A Hive session that answers statements from its standard input until that ends.
 *
 * <p>A request is one line, the statement in base64. The answer is "ok N" and N lines, one row each in base64, or
 * "error TEXT" with TEXT in base64. "#conf NAME=VALUE" sets what SET refuses; "#run CLASS ARGUMENT..." calls the
 * class's static method run(HiveConf, String[]). "#hold QUERY" compiles a query, for which Hive 4 opens its transaction
 * and takes its snapshot; "#release" runs it and answers its rows. In between nothing else can be run.
 */
public final class HiveEngine {
  private static final int ROWS_AT_ONCE = 10000;

  private static IDriver held;

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, "UTF-8");
    System.setOut(System.err);
    HiveConf conf = new HiveConf(SessionState.class);
    SessionState session = new SessionState(conf);
    session.setIsSilent(true);
    SessionState.start(session);
    answers.println("ok 0");
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = requests.readLine()) != null; ) {
      answer(answers, new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8), session);
    }
    System.exit(0);  // Hive leaves threads behind that would keep the process alive.
  }

  private static void answer(PrintStream answers, String statement, SessionState session) {
    StringBuilder answer = new StringBuilder();
    try {
      List<String> rows = execute(statement, session);
      answer.append("ok ").append(rows.size()).append('\n');
      for (String row : rows) {
        answer.append(encode(row)).append('\n');
      }
    } catch (Throwable problem) {
      StringWriter text = new StringWriter();
      problem.printStackTrace(new PrintWriter(text));
      answer.append("error ").append(encode(text.toString())).append('\n');
    }
    answers.print(answer);
    answers.flush();
  }

  private static List<String> execute(String statement, SessionState session) throws Exception {
    String[] words = statement.trim().split("\\s+");
    if (words[0].equals("#conf")) {
      String[] pair = words[1].split("=", 2);
      session.getConf().set(pair[0], pair[1]);
      return new ArrayList<>();
    }
    if (words[0].equals("#run")) {
      Class.forName(words[1], true, Thread.currentThread().getContextClassLoader())
          .getMethod("run", HiveConf.class, String[].class)
          .invoke(null, session.getConf(), Arrays.copyOfRange(words, 2, words.length));
      return new ArrayList<>();
    }
    if (words[0].equals("#release")) {
      try (IDriver driver = held) {
        check(driver.run());
        return rows(driver);
      }
    }
    if (words[0].equals("#hold")) {
      held = (IDriver) CommandProcessorFactory.get(new String[] {words[1]}, session.getConf());
      check(held.compileAndRespond(statement.trim().substring(words[0].length()).trim()));
      return new ArrayList<>();
    }
    CommandProcessor processor = CommandProcessorFactory.get(words, session.getConf());
    if (!(processor instanceof IDriver)) {
      check(processor.run(statement.trim().substring(words[0].length()).trim()));
      return new ArrayList<>();
    }
    try (IDriver driver = (IDriver) processor) {
      check(driver.run(statement));
      return rows(driver);
    }
  }

  private static List<String> rows(IDriver driver) throws Exception {
    List<String> all = new ArrayList<>();
    List<String> some = new ArrayList<>();
    driver.setMaxRows(ROWS_AT_ONCE);
    while (driver.getResults(some)) {
      all.addAll(some);
      some.clear();
    }
    return all;
  }

  /** Hive 3 answers with a code, Hive 4 throws. */
  private static void check(Object response) throws Exception {
    try {
      int code = (Integer) response.getClass().getMethod("getResponseCode").invoke(response);
      if (code != 0) {
        Throwable cause = (Throwable) response.getClass().getMethod("getException").invoke(response);
        throw new IllegalStateException(response.toString(), cause);
      }
    } catch (NoSuchMethodException hive4) {
      return;
    }
  }

  private static String encode(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
